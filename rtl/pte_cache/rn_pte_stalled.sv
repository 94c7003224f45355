// Requests that found no miss register, or whose victim is being read itself: a list of slots in
// order of arrival (the links are with the slots). After each arrival of a line all of them may try
// again, once.
`include "rn_assert.svh"

module rn_pte_stalled #(
  parameter int unsigned Slots = 64,
  localparam int unsigned SlotBits = (Slots > 1) ? $clog2(Slots) : 1,
  localparam int unsigned CountBits = $clog2(Slots + 1)
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                append_i,
  input  logic [SlotBits-1:0] append_slot_i,
  output logic                is_linked_o,  // append_slot_i becomes the successor of last_o
  output logic [SlotBits-1:0] last_o,

  input  logic                take_i,
  output logic [SlotBits-1:0] first_o,
  input  logic [SlotBits-1:0] next_i,  // the successor of first_o

  input  logic                retry_i,
  output logic                may_try_o,
  output logic                any_d_o  // somebody is here after this cycle
);
  logic [SlotBits-1:0]  first_q, last_q;
  logic [CountBits-1:0] count_q, count_d, left, tries_q, tries_d;

  assign left = count_q - CountBits'(take_i);
  assign count_d = left + CountBits'(append_i);
  assign tries_d = retry_i ? count_q : tries_q - CountBits'(take_i);
  assign is_linked_o = append_i && left != '0;
  assign first_o = first_q;
  assign last_o = last_q;
  assign may_try_o = tries_q != '0;
  assign any_d_o = count_d != '0;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q <= '0;
      tries_q <= '0;
    end else begin
      count_q <= count_d;
      tries_q <= tries_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (append_i && left == '0) first_q <= append_slot_i;
    else if (take_i) first_q <= next_i;
    if (append_i) last_q <= append_slot_i;
  end

  `RN_ASSERT(TakeWhatMayTry, !take_i || may_try_o)
  `RN_ASSERT(TriesArePresent, tries_q <= count_q)
  `RN_ASSERT(NoMoreThanSlots, !append_i || 32'(left) < Slots)
  `RN_ASSERT(RetryBetweenLookups, !(retry_i && (take_i || append_i)))
endmodule
