// Requests inside, by slot: what was asked, how far the request is, what the key check found, and
// the links of the lists on which slots wait. The key's index is compared in all slots at once: an
// invalidation sends the requests under its key back to the key check.
`include "rn_assert.svh"

module rn_pte_slots #(
  parameter int unsigned Slots = 64,
  localparam int unsigned SlotBits = (Slots > 1) ? $clog2(Slots) : 1
) (
  input  logic                                         clk_i,
  input  logic                                         rst_ni,

  output logic                                         free_o,
  output logic [SlotBits-1:0]                          free_slot_o,
  output logic                                         full_d_o,  // none is free after this cycle
  input  logic                                         accept_i,  // request_i takes the free slot
  input  rn_pte_cache_pkg::request_t                   request_i,
  input  logic [Slots-1:0]                             freed_i,

  // The slot that is looked up, when it is not a new one.
  input  logic [SlotBits-1:0]                          slot_i,
  output rn_pte_cache_pkg::request_t                   request_o,
  output rn_pte_cache_pkg::passed_t                    passed_o,
  output logic                                         is_mtt_o,  // past the key check
  output logic                                         counted_o,
  output logic [SlotBits-1:0]                          next_o,  // on its list

  // How it is parked; also a new one.
  input  logic                                         park_i,
  input  logic [SlotBits-1:0]                          park_slot_i,
  input  logic                                         park_mtt_i,
  input  logic                                         park_counted_i,
  input  logic                                         park_passed_i,  // with passed_i
  input  rn_pte_cache_pkg::passed_t                    passed_i,
  input  logic                                         link_i,  // it follows link_slot_i
  input  logic [SlotBits-1:0]                          link_slot_i,

  input  logic                                         restart_i,  // those under this index
  input  logic [rn_pte_cache_pkg::MptIndexBits-1:0]    restart_index_i,
  input  logic                                         restart_all_i
);
  localparam int unsigned IndexBits = rn_pte_cache_pkg::MptIndexBits;

  logic [Slots-1:0]                         used_q, used_d, mtt_q, counted_q, mtt_d, counted_d;
  logic [rn_pte_cache_pkg::RequestBits-1:0] request_mem [Slots];
  logic [rn_pte_cache_pkg::PassedBits-1:0]  passed_mem [Slots];
  logic [SlotBits-1:0]                      next_mem [Slots];
  logic [Slots*IndexBits-1:0]               index_q;
  logic [Slots-1:0]                         is_same_index;

  assign free_o = !(&used_q);
  assign full_d_o = &used_d;
  always_comb begin
    free_slot_o = '0;
    for (int unsigned s = Slots; s > 0; s--) begin
      if (!used_q[s-1]) free_slot_o = SlotBits'(s - 1);
    end
  end
  always_comb begin
    used_d = used_q & ~freed_i;
    if (accept_i) used_d[free_slot_o] = 1'b1;
  end

  assign request_o = request_mem[slot_i];
  assign passed_o = passed_mem[slot_i];
  assign next_o = next_mem[slot_i];
  assign is_mtt_o = mtt_q[slot_i];
  assign counted_o = counted_q[slot_i];

  always_ff @(posedge clk_i) begin
    if (accept_i) request_mem[free_slot_o] <= request_i;
  end
  always_ff @(posedge clk_i) begin
    if (park_i && park_passed_i) passed_mem[park_slot_i] <= passed_i;
  end
  always_ff @(posedge clk_i) begin
    if (link_i) next_mem[link_slot_i] <= park_slot_i;
  end

  for (genvar s = 0; s < Slots; s++) begin : gen_index
    assign is_same_index[s] = index_q[s*IndexBits +: IndexBits] == restart_index_i;
    always_ff @(posedge clk_i) begin
      if (accept_i && free_slot_o == SlotBits'(s)) begin
        index_q[s*IndexBits +: IndexBits] <= request_i.key[31:8];
      end
    end
  end

  always_comb begin
    mtt_d = mtt_q;
    counted_d = counted_q;
    if (park_i) begin
      mtt_d[park_slot_i] = park_mtt_i;
      counted_d[park_slot_i] = park_counted_i;
    end
    if (restart_all_i) begin
      mtt_d = '0;
      counted_d = '0;
    end else if (restart_i) begin
      mtt_d = mtt_d & ~is_same_index;
      counted_d = counted_d & ~is_same_index;
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      used_q <= '0;
      mtt_q <= '0;
      counted_q <= '0;
    end else begin
      used_q <= used_d;
      mtt_q <= mtt_d;
      counted_q <= counted_d;
    end
  end

  `RN_ASSERT(AcceptInFree, !accept_i || free_o)
  `RN_ASSERT(FreeWhatIsUsed, (freed_i & ~used_q) == '0)
  `RN_ASSERT(ParkedIsUsed, !park_i || used_d[park_slot_i])
  `RN_ASSERT(RestartBetweenLookups, !((restart_i || restart_all_i) && park_i))
endmodule
