// The invalidation in hand: its walk through the MTT cache, a line of the region a cycle or, where
// the region has as many lines as there are sets, a set a cycle; and the translations handed out,
// counted in two epochs, for which its answer waits.
`include "rn_assert.svh"

module rn_pte_inval #(
  parameter int unsigned MttSets = 512,
  parameter int unsigned MttLineEntries = 8,
  localparam int unsigned SetLog = $clog2(MttSets),
  localparam int unsigned SetBits = (SetLog > 0) ? SetLog : 1,
  localparam int unsigned EntryLog = $clog2(MttLineEntries),
  localparam int unsigned NumberBits = rn_pte_cache_pkg::MttIndexBits - EntryLog,
  localparam int unsigned StepBits = $clog2(MttSets + 1),
  localparam int unsigned HeldBits = rn_pte_cache_pkg::HeldBits
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  logic                         take_i,
  input  rn_msg_pkg::pte_inval_t       inval_i,
  output logic                         active_o,
  output logic                         active_d_o,
  output logic                         done_valid_o,
  output rn_msg_pkg::pte_inval_done_t  done_o,
  input  logic                         done_ready_i,

  // A step of the walk: lines from first to last of the set are dropped.
  output logic                         walk_o,
  output logic [SetBits-1:0]           walk_set_o,
  output logic [NumberBits-1:0]        walk_first_o,
  output logic [NumberBits-1:0]        walk_last_o,
  output logic                         walk_hits_o,  // there can be such lines

  output logic                         epoch_o,  // of the translations handed out now
  input  logic                         hand_out_i,
  input  logic                         release_i,
  input  logic                         release_epoch_i
);
  logic                  active_q, active_d, by_set_q, epoch_q, walk_epoch_q, is_done;
  logic [31:0]           token_q;
  logic [NumberBits-1:0] first_q, last_q, next_q, next_d;
  logic [StepBits-1:0]   steps_q, steps;
  logic                  beyond_q, is_carry;
  logic [63:0]           first, last, last_entry;
  logic                  is_by_set, is_last_beyond;
  logic [HeldBits-1:0]   outstanding0_q, outstanding1_q, outstanding0_d, outstanding1_d, awaited;
  logic                  release0, release1, hand_out0, hand_out1;

  // The lines of the region; the end of a region that wraps is the end of all numbers. Numbers that
  // no line in the cache can have are only told from others: beyond.
  always_comb begin
    last_entry = inval_i.mtt_index + (inval_i.mtt_count - 64'd1);
    if (last_entry < inval_i.mtt_index) last_entry = '1;
    first = inval_i.mtt_index >> EntryLog;
    last = last_entry >> EntryLog;
    is_by_set = last - first >= 64'(MttSets);
    steps = last[StepBits-1:0] - first[StepBits-1:0] + 1'b1;
    if (is_by_set) steps = StepBits'(MttSets);
    if (inval_i.mtt_count == '0) steps = '0;
  end
  assign is_last_beyond = last[63:NumberBits] != '0;

  assign walk_o = steps_q != '0;
  assign walk_hits_o = walk_o && !beyond_q;
  assign walk_first_o = by_set_q ? first_q : next_q;
  assign walk_last_o = by_set_q ? last_q : next_q;
  assign walk_set_o = (SetLog == 0) ? '0 : next_q[SetBits-1:0];
  assign {is_carry, next_d} = {1'b0, next_q} + 1'b1;

  assign release0 = release_i && !release_epoch_i;
  assign release1 = release_i && release_epoch_i;
  assign hand_out0 = hand_out_i && !epoch_q;
  assign hand_out1 = hand_out_i && epoch_q;
  assign outstanding0_d = outstanding0_q + HeldBits'(hand_out0) - HeldBits'(release0);
  assign outstanding1_d = outstanding1_q + HeldBits'(hand_out1) - HeldBits'(release1);
  assign awaited = walk_epoch_q ? outstanding1_q - HeldBits'(release1) :
                                  outstanding0_q - HeldBits'(release0);

  assign done_valid_o = active_q && !walk_o && awaited == '0;
  assign done_o.token = token_q;
  assign is_done = done_valid_o && done_ready_i;
  assign active_d = take_i || (active_q && !is_done);
  assign active_o = active_q;
  assign active_d_o = active_d;
  assign epoch_o = epoch_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      epoch_q <= 1'b0;
      steps_q <= '0;
      outstanding0_q <= '0;
      outstanding1_q <= '0;
    end else begin
      active_q <= active_d;
      outstanding0_q <= outstanding0_d;
      outstanding1_q <= outstanding1_d;
      if (take_i) begin
        epoch_q <= !epoch_q;
        steps_q <= steps;
      end else if (walk_o) begin
        steps_q <= steps_q - 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (take_i) begin
      token_q <= inval_i.token;
      walk_epoch_q <= epoch_q;
      by_set_q <= is_by_set;
      first_q <= first[NumberBits-1:0];
      last_q <= is_last_beyond ? '1 : last[NumberBits-1:0];
      next_q <= is_by_set ? '0 : first[NumberBits-1:0];
      beyond_q <= first[63:NumberBits] != '0;
    end else if (walk_o) begin
      next_q <= next_d;
      // Past the last number a walk by line has left the table for good.
      if (is_carry && !by_set_q) beyond_q <= 1'b1;
    end
  end

  logic unused;
  assign unused = ^inval_i.key;

  `RN_ASSERT(OneInHand, !(take_i && active_q))
  `RN_ASSERT(WalkIsActive, !walk_o || active_q)
  `RN_ASSERT(EpochIsDrained, !take_i || (epoch_q ? outstanding0_d : outstanding1_d) == '0)
  `RN_ASSERT(ReleasedWasHeld0, !release_i || release_epoch_i || outstanding0_q != '0)
  `RN_ASSERT(ReleasedWasHeld1, !release_i || !release_epoch_i || outstanding1_q != '0)
  `RN_ASSERT(HeldFits, !hand_out_i || !(&(epoch_q ? outstanding1_q : outstanding0_q)))
  `RN_ASSERT_STABLE(Done, done_valid_o, done_ready_i, done_o, 32)
endmodule
