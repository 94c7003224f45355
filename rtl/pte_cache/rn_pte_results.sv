// Answers on their way: a memory by slot, a list a client in order of lookup, each answer with the
// cycle from which on it can go.
`include "rn_assert.svh"

module rn_pte_results #(
  parameter int unsigned Slots = 64,
  localparam int unsigned SlotBits = (Slots > 1) ? $clog2(Slots) : 1
) (
  input  logic                                                   clk_i,
  input  logic                                                   rst_ni,
  input  logic [rn_pte_cache_pkg::CycleBits-1:0]                 cycle_i,

  input  logic                                                   push_i,
  input  logic                                                   push_client_i,
  input  logic [SlotBits-1:0]                                    push_slot_i,
  input  logic [rn_pte_cache_pkg::CycleBits-1:0]                 push_ready_cycle_i,
  input  rn_msg_pkg::pte_rsp_t                                   push_rsp_i,

  output logic [rn_pte_cache_pkg::Clients-1:0]                   valid_o,
  output logic [rn_pte_cache_pkg::Clients*rn_pte_cache_pkg::RspBits-1:0] rsp_o,
  input  logic [rn_pte_cache_pkg::Clients-1:0]                   ready_i,
  output logic [Slots-1:0]                                       freed_o,

  // For the wake: whether somebody waits, and until when.
  output logic [rn_pte_cache_pkg::Clients-1:0]                   waits_o,
  output logic [rn_pte_cache_pkg::Clients*rn_pte_cache_pkg::CycleBits-1:0] ready_cycles_o
);
  localparam int unsigned CycleBits = rn_pte_cache_pkg::CycleBits;
  localparam int unsigned RspBits = rn_pte_cache_pkg::RspBits;
  localparam int unsigned Clients = rn_pte_cache_pkg::Clients;

  logic [RspBits+CycleBits-1:0] result_mem [Slots];
  logic [SlotBits-1:0]          next_mem [Slots];
  logic [SlotBits-1:0]          link_tail;
  logic                         is_linked;
  logic [Clients-1:0]           is_linked_client, takes;
  logic [Clients*SlotBits-1:0]  heads, tails;

  always_ff @(posedge clk_i) begin
    if (push_i) result_mem[push_slot_i] <= {push_ready_cycle_i, push_rsp_i};
  end
  always_ff @(posedge clk_i) begin
    if (is_linked) next_mem[link_tail] <= push_slot_i;
  end
  assign link_tail = push_client_i ? tails[SlotBits +: SlotBits] : tails[0 +: SlotBits];
  assign is_linked = |is_linked_client;

  for (genvar c = 0; c < Clients; c++) begin : gen_client
    logic                         busy_q, busy_d, is_pushed, is_last;
    logic [SlotBits-1:0]          head_q, head_d, tail_q;
    logic [RspBits+CycleBits-1:0] result;

    assign result = result_mem[head_q];
    assign rsp_o[c*RspBits +: RspBits] = result[RspBits-1:0];
    assign ready_cycles_o[c*CycleBits +: CycleBits] = result[RspBits +: CycleBits];
    assign waits_o[c] = busy_q;
    assign valid_o[c] = busy_q && cycle_i >= result[RspBits +: CycleBits];
    assign takes[c] = valid_o[c] && ready_i[c];
    assign heads[c*SlotBits +: SlotBits] = head_q;
    assign tails[c*SlotBits +: SlotBits] = tail_q;

    assign is_pushed = push_i && push_client_i == 1'(c);
    assign is_linked_client[c] = is_pushed && busy_q;
    assign is_last = head_q == tail_q;

    always_comb begin
      busy_d = busy_q;
      head_d = head_q;
      if (takes[c]) begin
        busy_d = !is_last;
        head_d = next_mem[head_q];
      end
      if (is_pushed) begin
        busy_d = 1'b1;
        if (!busy_q || (takes[c] && is_last)) head_d = push_slot_i;
      end
    end

    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) busy_q <= 1'b0;
      else busy_q <= busy_d;
    end
    always_ff @(posedge clk_i) begin
      head_q <= head_d;
      if (is_pushed) tail_q <= push_slot_i;
    end

    `RN_ASSERT_STABLE(Rsp, valid_o[c], ready_i[c], result[RspBits-1:0], RspBits)
  end

  always_comb begin
    freed_o = '0;
    for (int unsigned c = 0; c < Clients; c++) begin
      if (takes[c]) freed_o[heads[c*SlotBits +: SlotBits]] = 1'b1;
    end
  end

  `RN_ASSERT(PushInTheFuture, !push_i || push_ready_cycle_i > cycle_i)
endmodule
