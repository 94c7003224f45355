// Reads of lines: a queue of miss registers, each with the cycle from which on its read can go, and
// the request to the DMA engine for the first of them. Its token is the register's number, the
// MPT's before the MTT's.
`include "rn_assert.svh"

module rn_pte_reads #(
  parameter int unsigned MptMisses = 8,
  parameter int unsigned MttMisses = 8,
  parameter int unsigned MttLineEntries = 8,
  localparam int unsigned MptIdxBits = (MptMisses > 1) ? $clog2(MptMisses) : 1,
  localparam int unsigned MttIdxBits = (MttMisses > 1) ? $clog2(MttMisses) : 1,
  localparam int unsigned IdxBits = (MptIdxBits > MttIdxBits) ? MptIdxBits : MttIdxBits,
  localparam int unsigned CycleBits = rn_pte_cache_pkg::CycleBits,
  localparam int unsigned MptNumberBits = rn_pte_cache_pkg::MptIndexBits,
  localparam int unsigned MttNumberBits = rn_pte_cache_pkg::MttIndexBits - $clog2(MttLineEntries)
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,
  input  logic [CycleBits-1:0]     cycle_i,

  input  logic                     start_i,
  input  logic                     start_mpt_i,
  input  logic [IdxBits-1:0]       start_idx_i,
  input  logic [CycleBits-1:0]     start_cycle_i,

  input  rn_msg_pkg::pte_base_t    base_i,
  input  logic                     hold_i,  // the base registers change
  output logic                     valid_o,
  output rn_msg_pkg::dma_req_t     req_o,
  input  logic                     ready_i,

  // The register whose read goes, and its line.
  output logic                     is_mpt_o,
  output logic [IdxBits-1:0]       idx_o,
  input  logic [MptNumberBits-1:0] mpt_number_i,
  input  logic [MttNumberBits-1:0] mtt_number_i,

  output logic                     waits_o,
  output logic                     due_o,
  output logic [CycleBits-1:0]     cycle_o
);
  localparam int unsigned Misses = MptMisses + MttMisses;
  localparam int unsigned PlaceBits = $clog2(Misses);
  localparam int unsigned CountBits = $clog2(Misses + 1);
  localparam int unsigned EntryLog = $clog2(MttLineEntries);

  logic [CycleBits+IdxBits:0] queue_mem [Misses];
  logic [PlaceBits-1:0]       head_q, tail_q;
  logic [CountBits-1:0]       count_q;
  logic [63:0]                entries;
  logic                       send;

  assign {cycle_o, is_mpt_o, idx_o} = queue_mem[head_q];
  assign waits_o = count_q != '0;
  assign due_o = waits_o && cycle_i >= cycle_o;
  assign valid_o = due_o && !hold_i;
  assign send = valid_o && ready_i;
  assign entries = 64'd1 << base_i.log_mtts[5:0];

  always_comb begin
    req_o = '0;
    req_o.op = rn_msg_pkg::DMA_READ;
    req_o.flags = rn_msg_pkg::DMA_PHYSICAL;
    if (is_mpt_o) begin
      req_o.token = 16'(idx_o);
      req_o.addr = base_i.mpt_pa + (64'(mpt_number_i) << 6);
      req_o.len = rn_hw_pkg::MPT_BYTES;
    end else begin
      req_o.token = 16'(MptMisses) + 16'(idx_o);
      req_o.addr = base_i.mtt_pa + (64'(mtt_number_i) << (EntryLog + 3));
      req_o.len = 32'(MttLineEntries * 8);
      // A table smaller than a line is read whole.
      if (entries < 64'(MttLineEntries)) req_o.len = {entries[28:0], 3'd0};
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      head_q <= '0;
      tail_q <= '0;
      count_q <= '0;
    end else begin
      if (start_i) tail_q <= (32'(tail_q) == Misses - 1) ? '0 : tail_q + 1'b1;
      if (send) head_q <= (32'(head_q) == Misses - 1) ? '0 : head_q + 1'b1;
      count_q <= count_q + CountBits'(start_i) - CountBits'(send);
    end
  end
  always_ff @(posedge clk_i) begin
    if (start_i) queue_mem[tail_q] <= {start_cycle_i, start_mpt_i, start_idx_i};
  end

  logic unused;
  assign unused = ^{base_i.log_mpts, base_i.log_mtts[7:6], entries[63:29]};

  `RN_ASSERT(QueueFits, !start_i || 32'(count_q) < Misses)
  `RN_ASSERT(StartInTheFuture, !start_i || start_cycle_i > cycle_i)
  // What is offered stays, but for a cycle in which the base registers change.
  `RN_ASSERT_STABLE(Req, due_o, ready_i && !hold_i, {is_mpt_o, idx_o}, IdxBits + 1)
endmodule
