// The checks of a request against its MPT entry, in the order of the InfiniBand specification, and
// the MTT entry of its first page. Combinational.

module rn_pte_check (
  input  rn_pte_cache_pkg::mpt_line_t                line_i,
  input  rn_pte_cache_pkg::request_t                 req_i,
  input  logic [5:0]                                 log_mtts_i,
  output rn_msg_pkg::pte_status_e                    status_o,
  output logic [rn_pte_cache_pkg::MttIndexBits-1:0]  entry_o  // only with status OK
);
  logic        is_key_bad, is_pd_bad, is_access_bad, is_bounds_bad, is_page_bad, is_beyond;
  logic [7:0]  wanted;
  logic [64:0] offset;  // and whether it is negative
  logic [63:0] room, page, entries, entry;

  assign wanted = req_i.access;
  assign is_key_bad = line_i.key != req_i.key;
  assign is_pd_bad = line_i.pd != req_i.pd;
  assign is_access_bad = (line_i.access & wanted) != wanted;

  // Differences only: no sum of the client's that could wrap.
  assign offset = {1'b0, req_i.va} - {1'b0, line_i.start_va};
  assign room = line_i.length - 64'(req_i.length);
  assign is_bounds_bad = offset[64] || 64'(req_i.length) > line_i.length ||
                         req_i.length > rn_hw_pkg::MAX_MESSAGE_BYTES || offset[63:0] > room;
  assign is_page_bad = line_i.log_page_bytes < 8'd12 || line_i.log_page_bytes > 8'd30;

  assign page = (req_i.va >> line_i.log_page_bytes[4:0]) -
                (line_i.start_va >> line_i.log_page_bytes[4:0]);
  assign entries = 64'd1 << log_mtts_i;
  assign is_beyond = line_i.mtt_index >= entries || page >= entries - line_i.mtt_index;
  assign entry = line_i.mtt_index + page;
  assign entry_o = entry[rn_pte_cache_pkg::MttIndexBits-1:0];

  always_comb begin
    if (is_key_bad) status_o = rn_msg_pkg::PTE_BAD_KEY;
    else if (is_pd_bad) status_o = rn_msg_pkg::PTE_BAD_PD;
    else if (is_access_bad) status_o = rn_msg_pkg::PTE_BAD_ACCESS;
    else if (is_bounds_bad) status_o = rn_msg_pkg::PTE_BAD_BOUNDS;
    else if (is_page_bad || (!req_i.check_only && is_beyond)) status_o = rn_msg_pkg::PTE_ABORT;
    else status_o = rn_msg_pkg::PTE_OK;
  end

  logic unused;
  assign unused = ^{entry[63:rn_pte_cache_pkg::MttIndexBits], req_i.client, req_i.id};
endmodule
