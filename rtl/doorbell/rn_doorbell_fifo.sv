// Writes taken in and not yet decoded: a ring in a memory that is read where its oldest entry
// stands. A place freed in a cycle is used from the next on.

`include "rn_assert.svh"

module rn_doorbell_fifo #(
  parameter int unsigned Entries = 64,
  localparam int unsigned CountWidth = $clog2(Entries + 1)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic                   push_i,
  input  rn_doorbell_pkg::held_t push_held_i,
  input  logic [63:0]            push_ready_cycle_i,
  input  logic                   pop_i,
  output rn_doorbell_pkg::held_t held_o,
  output logic [63:0]            ready_cycle_o,
  output logic                   is_empty_o,
  output logic                   is_full_o,
  output logic [CountWidth-1:0]  count_o
);

  localparam int unsigned IdxWidth = Entries > 1 ? $clog2(Entries) : 1;
  localparam int unsigned EntryWidth = rn_doorbell_pkg::HeldWidth + 64;
  localparam logic [IdxWidth-1:0] LastIdx = IdxWidth'(Entries - 1);

  logic [EntryWidth-1:0] mem[Entries];
  logic [IdxWidth-1:0] write_idx_d, write_idx_q, read_idx_d, read_idx_q;
  logic [CountWidth-1:0] count_d, count_q;

  assign {ready_cycle_o, held_o} = mem[read_idx_q];
  assign is_empty_o = count_q == '0;
  assign is_full_o = count_q >= CountWidth'(Entries);
  assign count_o = count_q;

  always_comb begin
    write_idx_d = write_idx_q;
    read_idx_d = read_idx_q;
    if (push_i) begin
      write_idx_d = write_idx_q == LastIdx ? '0 : write_idx_q + 1'b1;
    end
    if (pop_i) read_idx_d = read_idx_q == LastIdx ? '0 : read_idx_q + 1'b1;
    count_d = count_q + CountWidth'(push_i) - CountWidth'(pop_i);
  end

  always_ff @(posedge clk_i) begin
    if (push_i) mem[write_idx_q] <= {push_ready_cycle_i, push_held_i};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      write_idx_q <= '0;
      read_idx_q <= '0;
      count_q <= '0;
    end else begin
      write_idx_q <= write_idx_d;
      read_idx_q <= read_idx_d;
      count_q <= count_d;
    end
  end

  `RN_ASSERT(FifoDoesNotOverflow, !(push_i) || 32'(count_q) < Entries)
  `RN_ASSERT(FifoDoesNotUnderflow, !(pop_i) || count_q != '0)
  `RN_ASSERT_INIT(AnyEntry, Entries >= 1)

endmodule
