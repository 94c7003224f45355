// Miss registers of the MPT or the MTT cache: each stands for one line that is being read, with the
// requests that wait for it as a linked list of slots (first and last here, the links with the
// slots).
`include "rn_assert.svh"

module rn_pte_misses #(
  parameter int unsigned Misses = 8,
  parameter int unsigned Sets = 512,
  parameter int unsigned Ways = 2,
  parameter int unsigned NumberBits = 24,
  parameter int unsigned SlotBits = 6,
  localparam int unsigned SetLog = $clog2(Sets),
  localparam int unsigned SetBits = (SetLog > 0) ? SetLog : 1,
  localparam int unsigned WayBits = (Ways > 1) ? $clog2(Ways) : 1,
  localparam int unsigned IdxBits = (Misses > 1) ? $clog2(Misses) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // The line looked up, and the way it would take.
  input  logic [NumberBits-1:0] number_i,
  input  logic [WayBits-1:0]    victim_way_i,
  output logic                  match_o,  // it is being read
  output logic [SlotBits-1:0]   match_last_o,  // the last that waits for it
  output logic                  victim_is_read_o,  // what is in that way is being read
  output logic                  free_o,
  output logic [IdxBits-1:0]    free_idx_o,
  output logic                  any_d_o,  // some register is busy after this cycle
  input  logic                  start_i,  // take the free register, slot_i waits first
  input  logic                  join_i,  // slot_i waits last
  input  logic [SlotBits-1:0]   slot_i,

  // The line that has come: its register is free afterwards.
  input  logic                  receive_i,
  input  logic [IdxBits-1:0]    receive_idx_i,
  output logic                  receive_stale_o,
  output logic [SetBits-1:0]    receive_set_o,
  output logic [WayBits-1:0]    receive_way_o,
  output logic [SlotBits-1:0]   receive_first_o,
  output logic [SlotBits-1:0]   receive_last_o,

  // The line to be asked for.
  input  logic                  send_i,
  input  logic [IdxBits-1:0]    send_idx_i,
  output logic [NumberBits-1:0] send_number_o,

  // Reads overtaken by an invalidation.
  input  logic                  drop_i,
  input  logic [NumberBits-1:0] drop_first_i,
  input  logic [NumberBits-1:0] drop_last_i,
  input  logic                  flush_i
);
  logic [Misses-1:0]            busy_q, stale_q, sent_q;
  logic [Misses-1:0]            busy_d, stale_d, sent_d;
  logic [Misses-1:0]            match, is_victim, is_dropped;
  logic [Misses*NumberBits-1:0] number_q;
  logic [Misses*WayBits-1:0]    way_q;
  logic [Misses*SlotBits-1:0]   first_q, last_q;
  logic [Misses-1:0]            start, joins, received;

  for (genvar m = 0; m < Misses; m++) begin : gen_miss
    logic [NumberBits-1:0] number;
    logic                  is_live, is_same_set;

    assign number = number_q[m*NumberBits +: NumberBits];
    assign is_live = busy_q[m] && !stale_q[m];
    if (SetLog > 0) begin : gen_set
      assign is_same_set = number[SetLog-1:0] == number_i[SetLog-1:0];
    end else begin : gen_no_set
      assign is_same_set = 1'b1;
    end
    assign match[m] = is_live && number == number_i;
    assign is_victim[m] = is_live && is_same_set && way_q[m*WayBits +: WayBits] == victim_way_i;
    assign is_dropped[m] = is_live && drop_i && number >= drop_first_i && number <= drop_last_i;
    assign start[m] = start_i && free_idx_o == IdxBits'(m);
    assign joins[m] = join_i && match[m];
    assign received[m] = receive_i && receive_idx_i == IdxBits'(m);

    always_ff @(posedge clk_i) begin
      if (start[m]) begin
        number_q[m*NumberBits +: NumberBits] <= number_i;
        way_q[m*WayBits +: WayBits] <= victim_way_i;
        first_q[m*SlotBits +: SlotBits] <= slot_i;
      end
      if (start[m] || joins[m]) last_q[m*SlotBits +: SlotBits] <= slot_i;
    end
  end

  assign match_o = |match;
  assign victim_is_read_o = |is_victim;
  assign free_o = !(&busy_q);

  always_comb begin
    match_last_o = '0;
    free_idx_o = '0;
    for (int unsigned m = 0; m < Misses; m++) begin
      if (match[m]) match_last_o = match_last_o | last_q[m*SlotBits +: SlotBits];
      if (!busy_q[Misses-1-m]) free_idx_o = IdxBits'(Misses - 1 - m);
    end
  end

  always_comb begin
    receive_stale_o = 1'b0;
    receive_set_o = '0;
    receive_way_o = '0;
    receive_first_o = '0;
    receive_last_o = '0;
    send_number_o = '0;
    for (int unsigned m = 0; m < Misses; m++) begin
      if (receive_idx_i == IdxBits'(m)) begin
        receive_stale_o = stale_q[m];
        receive_set_o = number_q[m*NumberBits +: SetBits];
        receive_way_o = way_q[m*WayBits +: WayBits];
        receive_first_o = first_q[m*SlotBits +: SlotBits];
        receive_last_o = last_q[m*SlotBits +: SlotBits];
      end
      if (send_idx_i == IdxBits'(m)) send_number_o = number_q[m*NumberBits +: NumberBits];
    end
  end

  always_comb begin
    busy_d = (busy_q | start) & ~received;
    stale_d = (stale_q | is_dropped) & ~start;
    if (flush_i) stale_d = stale_d | busy_q;
    sent_d = sent_q & ~start;
    if (send_i) sent_d[send_idx_i] = 1'b1;
  end
  assign any_d_o = |busy_d;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      busy_q <= '0;
      stale_q <= '0;
      sent_q <= '0;
    end else begin
      busy_q <= busy_d;
      stale_q <= stale_d;
      sent_q <= sent_d;
    end
  end

  `RN_ASSERT(MatchOneHot, $onehot0(match))
  `RN_ASSERT(StartOnFree, !start_i || free_o)
  `RN_ASSERT(StartOnMiss, !(start_i && match_o))
  `RN_ASSERT(JoinOnMatch, !join_i || match_o)
  `RN_ASSERT(ReceiveWhatWasSent, (received & ~(busy_q & sent_q)) == '0)
  `RN_ASSERT(ReceiveInRange, !receive_i || 32'(receive_idx_i) < Misses)
  `RN_ASSERT(SendOnce, !send_i || (busy_q[send_idx_i] && !sent_q[send_idx_i]))
endmodule
