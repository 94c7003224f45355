// Types and widths of the PTE cache that are not messages.
package rn_pte_cache_pkg;
  localparam int unsigned Clients = 2;  // enum rn_pte_client: dma, rx
  localparam int unsigned ReqBits = 192;  // rn_msg_pkg::pte_req_t
  localparam int unsigned RspBits = 136;  // rn_msg_pkg::pte_rsp_t
  localparam int unsigned CycleBits = 64;
  localparam int unsigned MptIndexBits = 24;
  localparam int unsigned MttIndexBits = 40;  // the largest table that INIT_HCA takes
  localparam int unsigned HeldBits = 16;  // translations handed out in an epoch
  localparam int unsigned MptEntryBits = 512;
  localparam int unsigned MttEntryBits = 64;

  // What is kept of an MPT entry; only live ones are.
  typedef struct packed {
    logic [7:0]  access;
    logic [7:0]  log_page_bytes;
    logic [31:0] key;
    logic [31:0] pd;
    logic [63:0] start_va;
    logic [63:0] length;
    logic [63:0] mtt_index;
  } mpt_line_t;
  localparam int unsigned MptLineBits = 272;

  // A request that waits, as far as an invalidation does not change it.
  typedef struct packed {
    logic        client;
    logic        check_only;
    logic [15:0] id;
    logic [7:0]  access;
    logic [31:0] key;
    logic [31:0] pd;
    logic [31:0] length;
    logic [63:0] va;
  } request_t;
  localparam int unsigned RequestBits = 186;

  // What the key check found, for a request that waits for its translation.
  typedef struct packed {
    logic [MttIndexBits-1:0] entry;
    logic [4:0]              log_page_bytes;
    logic                    mpt_hit;
  } passed_t;
  localparam int unsigned PassedBits = 46;
endpackage
