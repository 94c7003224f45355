// PTE cache: memory protection (MPT) and translation (MTT) entries of the regions, cached from host
// memory, and the checks that every access of the NIC to user memory passes. Ports, states and
// cycles are those of the C block (docs/blocks/pte_cache.md). One lookup a cycle: both caches are
// read and the request is sent on to its answer, to a miss register or to the stalled ones in the
// same cycle; the latencies stand behind that, as cycle numbers from which on an answer or a read
// can go. Nothing here counts cycles, so the clock may be stopped as wake_o says.
`include "rn_assert.svh"

module rn_pte_cache #(
  parameter int unsigned IntervalCycles = 1,
  parameter int unsigned MptCycles = 2,
  parameter int unsigned MttCycles = 2,
  parameter int unsigned FillCycles = 1,
  parameter int unsigned RequestSlots = 64,
  parameter int unsigned MptSets = 512,
  parameter int unsigned MptWays = 2,
  parameter int unsigned MptMisses = 8,
  parameter int unsigned MttSets = 512,
  parameter int unsigned MttWays = 2,
  parameter int unsigned MttLineEntries = 8,
  parameter int unsigned MttMisses = 8,
  localparam int unsigned MttLineBits = MttLineEntries * 64,
  localparam int unsigned FillBits = (MttLineBits > 512) ? MttLineBits : 512
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,
  input  logic [63:0]                         cycle_i,

  input  logic [1:0]                          req_valid_i,
  input  logic [2*rn_pte_cache_pkg::ReqBits-1:0] req_i,  // rn_msg_pkg::pte_req_t a client
  output logic [1:0]                          req_ready_o,
  input  logic                                release_valid_i,
  input  rn_msg_pkg::pte_release_t            release_i,
  output logic                                release_ready_o,
  input  logic                                inval_valid_i,
  input  rn_msg_pkg::pte_inval_t              inval_i,
  output logic                                inval_ready_o,
  input  logic                                base_valid_i,
  input  rn_msg_pkg::pte_base_t               base_i,
  output logic                                base_ready_o,
  input  logic                                dma_rsp_valid_i,
  input  rn_msg_pkg::dma_rsp_t                dma_rsp_i,
  input  logic [FillBits-1:0]                 dma_rsp_data_i,
  output logic                                dma_rsp_ready_o,

  output logic [1:0]                          rsp_valid_o,
  output logic [2*rn_pte_cache_pkg::RspBits-1:0] rsp_o,  // rn_msg_pkg::pte_rsp_t a client
  input  logic [1:0]                          rsp_ready_i,
  output logic                                inval_done_valid_o,
  output rn_msg_pkg::pte_inval_done_t         inval_done_o,
  input  logic                                inval_done_ready_i,
  output logic                                dma_req_valid_o,
  output rn_msg_pkg::dma_req_t                dma_req_o,
  input  logic                                dma_req_ready_i,

  output logic                                idle_o,
  output logic [31:0]                         wake_o,
  output rn_msg_pkg::stall_e                  stall_o,
  output rn_msg_pkg::pte_cache_events_t       events_o,
  output rn_msg_pkg::pte_cache_lookup_t       lookup_o,
  output logic [MttWays-1:0]                  drop_valid_o,
  output logic [MttWays*64-1:0]               drop_number_o
);
  localparam int unsigned SlotBits = (RequestSlots > 1) ? $clog2(RequestSlots) : 1;
  localparam int unsigned EntryLog = $clog2(MttLineEntries);
  localparam int unsigned EntryBits = (EntryLog > 0) ? EntryLog : 1;
  localparam int unsigned MptNumberBits = rn_pte_cache_pkg::MptIndexBits;
  localparam int unsigned MttNumberBits = rn_pte_cache_pkg::MttIndexBits - EntryLog;
  localparam int unsigned MptSetLog = $clog2(MptSets);
  localparam int unsigned MptSetBits = (MptSetLog > 0) ? MptSetLog : 1;
  localparam int unsigned MttSetLog = $clog2(MttSets);
  localparam int unsigned MttSetBits = (MttSetLog > 0) ? MttSetLog : 1;
  localparam int unsigned MptWayBits = (MptWays > 1) ? $clog2(MptWays) : 1;
  localparam int unsigned MttWayBits = (MttWays > 1) ? $clog2(MttWays) : 1;
  localparam int unsigned MptLines = MptSets * MptWays;
  localparam int unsigned MttLines = MttSets * MttWays;
  localparam int unsigned MptAddrBits = (MptLines > 1) ? $clog2(MptLines) : 1;
  localparam int unsigned MttAddrBits = (MttLines > 1) ? $clog2(MttLines) : 1;
  localparam int unsigned MptIdxBits = (MptMisses > 1) ? $clog2(MptMisses) : 1;
  localparam int unsigned MttIdxBits = (MttMisses > 1) ? $clog2(MttMisses) : 1;
  localparam int unsigned Misses = MptMisses + MttMisses;
  localparam int unsigned IdxBits = (MptIdxBits > MttIdxBits) ? MptIdxBits : MttIdxBits;
  localparam int unsigned MptCountBits = $clog2(MptLines + 1);
  localparam int unsigned MttCountBits = $clog2(MttLines + 1);
  localparam int unsigned DropBits = $clog2(MptLines + MttLines + 1);

  // -- What this cycle does. --

  logic base_take, inval_take, fill_take, lookup, is_free_cycle;
  logic take_replay, take_mtt, take_mpt, take_new;

  // Base registers.
  rn_msg_pkg::pte_base_t base_q;
  logic                  has_base_q, flush;

  assign base_ready_o = 1'b1;
  assign base_take = base_valid_i;
  assign flush = base_take && has_base_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) has_base_q <= 1'b0;
    else if (base_take) has_base_q <= 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (base_take) base_q <= base_i;
  end

  // Invalidation.
  logic                  inval_active, inval_active_d, walk, walk_drop, epoch, hand_out;
  logic [MttSetBits-1:0] walk_set;
  logic [MttNumberBits-1:0] walk_first, walk_last;
  logic                  walk_hits_any;

  assign release_ready_o = 1'b1;
  assign inval_ready_o = !inval_active && !base_take;
  assign inval_take = inval_valid_i && inval_ready_o;
  assign walk_drop = walk_hits_any && !base_take;

  rn_pte_inval #(
    .MttSets        (MttSets),
    .MttLineEntries (MttLineEntries)
  ) u_inval (
    .clk_i,
    .rst_ni,
    .take_i          (inval_take),
    .inval_i,
    .active_o        (inval_active),
    .active_d_o      (inval_active_d),
    .done_valid_o    (inval_done_valid_o),
    .done_o          (inval_done_o),
    .done_ready_i    (inval_done_ready_i),
    .walk_o          (walk),
    .walk_set_o      (walk_set),
    .walk_first_o    (walk_first),
    .walk_last_o     (walk_last),
    .walk_hits_o     (walk_hits_any),
    .epoch_o         (epoch),
    .hand_out_i      (hand_out),
    .release_i       (release_valid_i),
    .release_epoch_i (release_i.epoch[0])
  );

  // The tags belong to base registers, an invalidation, an arrival or a lookup.
  logic                replay_busy_q, replay_stale_q, is_replay_due, is_lookup_due;
  logic [SlotBits-1:0] replay_first_q, replay_last_q;
  logic [63:0]         replay_cycle_q, next_lookup_q;
  logic [7:0]          replay_status_q;
  logic                mpt_may_try, mtt_may_try, mpt_miss_free, mtt_miss_free, slot_free;
  logic                mpt_retry, mtt_retry, is_stalled_first;
  logic                next_client_q;
  logic                is_open;
  logic [1:0]          grant;

  assign is_free_cycle = !base_take && !inval_take && !walk;
  assign dma_rsp_ready_o = is_free_cycle && !replay_busy_q;
  assign fill_take = dma_rsp_valid_i && dma_rsp_ready_o;
  assign is_lookup_due = is_free_cycle && !fill_take && cycle_i >= next_lookup_q;
  assign is_replay_due = replay_busy_q && cycle_i >= replay_cycle_q;

  assign mtt_retry = mtt_may_try && mtt_miss_free;
  assign mpt_retry = mpt_may_try && mpt_miss_free;
  assign is_stalled_first = mtt_retry || mpt_retry;
  assign grant[0] = req_valid_i[0] && (!next_client_q || !req_valid_i[1]);
  assign grant[1] = req_valid_i[1] && (next_client_q || !req_valid_i[0]);

  assign take_replay = is_lookup_due && is_replay_due;
  assign take_mtt = is_lookup_due && !replay_busy_q && mtt_retry;
  assign take_mpt = is_lookup_due && !replay_busy_q && !mtt_retry && mpt_retry;
  assign is_open = is_lookup_due && !replay_busy_q && !is_stalled_first && slot_free;
  assign req_ready_o = is_open ? grant : 2'b00;
  assign take_new = |(req_valid_i & req_ready_o);
  assign lookup = take_replay || take_mtt || take_mpt || take_new;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_lookup_q <= '0;
      next_client_q <= 1'b0;
    end else begin
      if (lookup) next_lookup_q <= cycle_i + 64'(IntervalCycles);
      if (take_new) next_client_q <= req_ready_o[0];
    end
  end

  // -- The request. --

  rn_msg_pkg::pte_req_t       req0, req1, req;
  rn_pte_cache_pkg::request_t new_request, old_request, request;
  rn_pte_cache_pkg::passed_t  old_passed, passed;
  logic                       old_is_mtt, old_counted, is_mtt_stage, counted, is_refused;
  logic [SlotBits-1:0]        old_slot, new_slot, slot, next_slot;
  logic [SlotBits-1:0]        mpt_stalled_first, mtt_stalled_first;

  assign {req1, req0} = req_i;
  assign req = req_ready_o[1] ? req1 : req0;
  assign new_request.client = req_ready_o[1];
  assign new_request.check_only = req.check_only != '0;
  assign new_request.id = req.id;
  assign new_request.access = req.access;
  assign new_request.key = req.key;
  assign new_request.pd = req.pd;
  assign new_request.length = req.length;
  assign new_request.va = req.va;

  always_comb begin
    if (replay_busy_q) old_slot = replay_first_q;
    else if (mtt_retry) old_slot = mtt_stalled_first;
    else old_slot = mpt_stalled_first;
  end
  assign slot = take_new ? new_slot : old_slot;
  assign request = take_new ? new_request : old_request;
  assign is_mtt_stage = !take_new && old_is_mtt;
  assign counted = !take_new && old_counted && !(replay_busy_q && replay_stale_q);
  assign is_refused = take_replay && replay_status_q != rn_msg_pkg::PTE_OK;

  // -- Key check. --

  logic [MptNumberBits-1:0]          mpt_number, mpt_victim_number;
  logic [MptSetBits-1:0]             mpt_set;
  logic [MptWays*MptNumberBits-1:0]  mpt_numbers;
  logic [MptWays-1:0]                mpt_valid, mpt_drop;
  logic                              mpt_hit, mpt_victim_valid, mpt_victim_is_read;
  logic                              mpt_touch, mpt_start;
  logic                              mpt_match, mpt_join, mpt_any_d;
  logic                              mpt_stale, mpt_receive, mpt_fail;
  logic [MptWayBits-1:0]             mpt_hit_way, mpt_victim_way, mpt_fill_way;
  logic [MptIdxBits-1:0]             mpt_free_idx, mpt_send_idx;
  logic [SlotBits-1:0]               mpt_match_last, mpt_fill_first, mpt_fill_last;
  logic [MptNumberBits-1:0]          mpt_send_number;
  logic [MptSetBits-1:0]             mpt_fill_set;
  logic [MptCountBits-1:0]           mpt_count;
  logic                              is_index_ok, mpt_look, mpt_found;
  logic                              mpt_miss, mpt_stall, mpt_pass;
  logic                              mpt_send, mpt_inval_drop;
  logic [IdxBits-1:0]                send_idx;
  rn_pte_cache_pkg::mpt_line_t       mpt_line, mpt_fill_line;
  rn_msg_pkg::pte_status_e           check_status;
  logic [rn_pte_cache_pkg::MttIndexBits-1:0] check_entry;

  assign mpt_number = inval_take ? inval_i.key[31:8] : request.key[31:8];
  assign is_index_ok = has_base_q && (request.key[31:8] >> base_q.log_mpts[5:0]) == '0;
  assign mpt_look = lookup && !is_refused && !is_mtt_stage && is_index_ok;
  assign mpt_found = mpt_look && mpt_hit && !mpt_match;
  assign mpt_join = mpt_look && mpt_match;
  assign mpt_miss = mpt_look && !mpt_hit;
  assign mpt_start = mpt_miss && mpt_miss_free && !mpt_victim_is_read;
  assign mpt_stall = mpt_miss && !mpt_start;
  assign mpt_touch = mpt_start || ((mpt_found || mpt_join) && !counted);
  assign mpt_pass = mpt_found && check_status == rn_msg_pkg::PTE_OK && !request.check_only;
  assign mpt_inval_drop = inval_take && mpt_hit;

  if (MptSetLog > 0) begin : gen_mpt_set
    assign mpt_set = mpt_receive ? mpt_fill_set : mpt_number[MptSetBits-1:0];
  end else begin : gen_mpt_one_set
    assign mpt_set = '0;
  end
  always_comb begin
    mpt_drop = '0;
    for (int unsigned w = 0; w < MptWays; w++) begin
      mpt_drop[w] = (mpt_inval_drop && mpt_hit_way == MptWayBits'(w)) ||
                    (mpt_fail && mpt_fill_way == MptWayBits'(w));
    end
  end

  rn_pte_tags #(
    .Sets       (MptSets),
    .Ways       (MptWays),
    .NumberBits (MptNumberBits)
  ) u_mpt_tags (
    .clk_i,
    .rst_ni,
    .set_i           (mpt_set),
    .numbers_o       (mpt_numbers),
    .valid_o         (mpt_valid),
    .number_i        (mpt_number),
    .hit_o           (mpt_hit),
    .hit_way_o       (mpt_hit_way),
    .victim_way_o    (mpt_victim_way),
    .victim_valid_o  (mpt_victim_valid),
    .victim_number_o (mpt_victim_number),
    .touch_i         (mpt_touch),
    .alloc_i         (mpt_start),
    .drop_i          (mpt_drop),
    .flush_i         (flush),
    .count_o         (mpt_count)
  );

  rn_pte_misses #(
    .Misses     (MptMisses),
    .Sets       (MptSets),
    .Ways       (MptWays),
    .NumberBits (MptNumberBits),
    .SlotBits   (SlotBits)
  ) u_mpt_misses (
    .clk_i,
    .rst_ni,
    .number_i         (mpt_number),
    .victim_way_i     (mpt_victim_way),
    .match_o          (mpt_match),
    .match_last_o     (mpt_match_last),
    .victim_is_read_o (mpt_victim_is_read),
    .free_o           (mpt_miss_free),
    .free_idx_o       (mpt_free_idx),
    .any_d_o          (mpt_any_d),
    .start_i          (mpt_start),
    .join_i           (mpt_join),
    .slot_i           (slot),
    .receive_i        (mpt_receive),
    .receive_idx_i    (dma_rsp_i.token[MptIdxBits-1:0]),
    .receive_stale_o  (mpt_stale),
    .receive_set_o    (mpt_fill_set),
    .receive_way_o    (mpt_fill_way),
    .receive_first_o  (mpt_fill_first),
    .receive_last_o   (mpt_fill_last),
    .send_i           (mpt_send),
    .send_idx_i       (mpt_send_idx),
    .send_number_o    (mpt_send_number),
    .drop_i           (inval_take),
    .drop_first_i     (mpt_number),
    .drop_last_i      (mpt_number),
    .flush_i          (flush)
  );

  // The entries, a row a line.
  logic [rn_pte_cache_pkg::MptLineBits-1:0] mpt_mem [MptLines];
  logic [MptAddrBits-1:0]                   mpt_read_addr, mpt_write_addr;
  logic                                     mpt_install;

  assign mpt_read_addr = MptAddrBits'(32'(mpt_set) * MptWays + 32'(mpt_hit_way));
  assign mpt_write_addr = MptAddrBits'(32'(mpt_set) * MptWays + 32'(mpt_fill_way));
  assign mpt_line = mpt_mem[mpt_read_addr];
  always_ff @(posedge clk_i) begin
    if (mpt_install) mpt_mem[mpt_write_addr] <= mpt_fill_line;
  end

  rn_pte_check u_check (
    .line_i     (mpt_line),
    .req_i      (request),
    .log_mtts_i (base_q.log_mtts[5:0]),
    .status_o   (check_status),
    .entry_o    (check_entry)
  );

  assign passed.entry = mpt_pass ? check_entry : old_passed.entry;
  assign passed.log_page_bytes = mpt_pass ? mpt_line.log_page_bytes[4:0] :
                                            old_passed.log_page_bytes;
  assign passed.mpt_hit = mpt_pass ? !counted : is_mtt_stage && old_passed.mpt_hit;

  // -- Translation. --

  logic [MttNumberBits-1:0]          mtt_number, mtt_victim_number;
  logic [MttSetBits-1:0]             mtt_set;
  logic [MttWays*MttNumberBits-1:0]  mtt_numbers;
  logic [MttWays-1:0]                mtt_valid, mtt_drop, walk_hits;
  logic                              mtt_hit, mtt_victim_valid, mtt_victim_is_read;
  logic                              mtt_touch, mtt_start;
  logic                              mtt_match, mtt_join, mtt_any_d;
  logic                              mtt_stale, mtt_receive, mtt_fail;
  logic [MttWayBits-1:0]             mtt_hit_way, mtt_victim_way, mtt_fill_way;
  logic [MttIdxBits-1:0]             mtt_free_idx, mtt_send_idx, mtt_receive_idx;
  logic [SlotBits-1:0]               mtt_match_last, mtt_fill_first, mtt_fill_last;
  logic [MttNumberBits-1:0]          mtt_send_number;
  logic [MttSetBits-1:0]             mtt_fill_set;
  logic [MttCountBits-1:0]           mtt_count;
  logic                              mtt_look, mtt_found, mtt_miss;
  logic                              mtt_stall, mtt_counted, mtt_send;

  assign mtt_number = passed.entry[rn_pte_cache_pkg::MttIndexBits-1:EntryLog];
  assign mtt_counted = is_mtt_stage && counted;
  assign mtt_look = lookup && !is_refused && (is_mtt_stage || mpt_pass);
  assign mtt_found = mtt_look && mtt_hit && !mtt_match;
  assign mtt_join = mtt_look && mtt_match;
  assign mtt_miss = mtt_look && !mtt_hit;
  assign mtt_start = mtt_miss && mtt_miss_free && !mtt_victim_is_read;
  assign mtt_stall = mtt_miss && !mtt_start;
  assign mtt_touch = mtt_start || ((mtt_found || mtt_join) && !mtt_counted);

  if (MttSetLog > 0) begin : gen_mtt_set
    always_comb begin
      if (walk) mtt_set = walk_set;
      else if (mtt_receive) mtt_set = mtt_fill_set;
      else mtt_set = mtt_number[MttSetBits-1:0];
    end
  end else begin : gen_mtt_one_set
    assign mtt_set = '0;
  end
  always_comb begin
    for (int unsigned w = 0; w < MttWays; w++) begin
      walk_hits[w] = walk_drop && mtt_valid[w] &&
                     mtt_numbers[w*MttNumberBits +: MttNumberBits] >= walk_first &&
                     mtt_numbers[w*MttNumberBits +: MttNumberBits] <= walk_last;
      mtt_drop[w] = walk_hits[w] || (mtt_fail && mtt_fill_way == MttWayBits'(w));
    end
  end

  rn_pte_tags #(
    .Sets       (MttSets),
    .Ways       (MttWays),
    .NumberBits (MttNumberBits)
  ) u_mtt_tags (
    .clk_i,
    .rst_ni,
    .set_i           (mtt_set),
    .numbers_o       (mtt_numbers),
    .valid_o         (mtt_valid),
    .number_i        (mtt_number),
    .hit_o           (mtt_hit),
    .hit_way_o       (mtt_hit_way),
    .victim_way_o    (mtt_victim_way),
    .victim_valid_o  (mtt_victim_valid),
    .victim_number_o (mtt_victim_number),
    .touch_i         (mtt_touch),
    .alloc_i         (mtt_start),
    .drop_i          (mtt_drop),
    .flush_i         (flush),
    .count_o         (mtt_count)
  );

  rn_pte_misses #(
    .Misses     (MttMisses),
    .Sets       (MttSets),
    .Ways       (MttWays),
    .NumberBits (MttNumberBits),
    .SlotBits   (SlotBits)
  ) u_mtt_misses (
    .clk_i,
    .rst_ni,
    .number_i         (mtt_number),
    .victim_way_i     (mtt_victim_way),
    .match_o          (mtt_match),
    .match_last_o     (mtt_match_last),
    .victim_is_read_o (mtt_victim_is_read),
    .free_o           (mtt_miss_free),
    .free_idx_o       (mtt_free_idx),
    .any_d_o          (mtt_any_d),
    .start_i          (mtt_start),
    .join_i           (mtt_join),
    .slot_i           (slot),
    .receive_i        (mtt_receive),
    .receive_idx_i    (mtt_receive_idx),
    .receive_stale_o  (mtt_stale),
    .receive_set_o    (mtt_fill_set),
    .receive_way_o    (mtt_fill_way),
    .receive_first_o  (mtt_fill_first),
    .receive_last_o   (mtt_fill_last),
    .send_i           (mtt_send),
    .send_idx_i       (mtt_send_idx),
    .send_number_o    (mtt_send_number),
    .drop_i           (walk_drop),
    .drop_first_i     (walk_first),
    .drop_last_i      (walk_last),
    .flush_i          (flush)
  );

  // The translations, a row a line. Below the smallest page only the lowest bit counts: present.
  localparam int unsigned KeptBits = 53;
  logic [MttLineEntries*KeptBits-1:0] mtt_mem [MttLines];
  logic [MttLineEntries*KeptBits-1:0] mtt_row, mtt_fill_row;
  logic [MttAddrBits-1:0]             mtt_read_addr, mtt_write_addr;
  logic [EntryBits-1:0]               mtt_column;
  logic [63:0]                        frame, pa;
  logic [30:0]                        page_bytes, to_end;
  logic [29:0]                        offset_mask, offset;
  logic                               mtt_install, is_present;

  assign mtt_read_addr = MttAddrBits'(32'(mtt_set) * MttWays + 32'(mtt_hit_way));
  assign mtt_write_addr = MttAddrBits'(32'(mtt_set) * MttWays + 32'(mtt_fill_way));
  assign mtt_row = mtt_mem[mtt_read_addr];
  assign mtt_column = (EntryLog == 0) ? '0 : passed.entry[EntryBits-1:0];
  assign {frame[63:12], is_present} = mtt_row[32'(mtt_column)*KeptBits +: KeptBits];
  assign frame[11:0] = '0;
  for (genvar e = 0; e < MttLineEntries; e++) begin : gen_entry
    assign mtt_fill_row[e*KeptBits +: KeptBits] = {dma_rsp_data_i[e*64+12 +: 52],
                                                   dma_rsp_data_i[e*64]};
  end
  always_ff @(posedge clk_i) begin
    if (mtt_install) mtt_mem[mtt_write_addr] <= mtt_fill_row;
  end

  // Pages have at most 2^30 bytes.
  assign page_bytes = 31'd1 << passed.log_page_bytes;
  assign offset_mask = page_bytes[29:0] - 30'd1;
  assign offset = request.va[29:0] & offset_mask;
  assign to_end = page_bytes - 31'(offset);
  assign pa = {frame[63:30], (frame[29:0] & ~offset_mask) | offset};

  // -- The answer, or where the request waits. --

  rn_msg_pkg::pte_rsp_t rsp;
  logic                 finish, mpt_done, parked;
  logic [63:0]          mpt_cycle, mtt_cycle, finish_cycle;

  assign mpt_cycle = cycle_i + 64'(MptCycles);
  assign mtt_cycle = cycle_i + (is_mtt_stage ? 64'(MttCycles) : 64'(MptCycles) + 64'(MttCycles));
  assign mpt_done = mpt_found && !mpt_pass;
  assign parked = mpt_start || mpt_join || mpt_stall || mtt_start || mtt_join || mtt_stall;
  assign finish = lookup && !parked;
  assign finish_cycle = (mtt_found || (is_refused && is_mtt_stage)) ? mtt_cycle : mpt_cycle;
  assign hand_out = mtt_found && is_present;

  always_comb begin
    rsp = '0;
    rsp.id = request.id;
    rsp.hit = {6'd0, mtt_found && !mtt_counted, mpt_done ? !counted : passed.mpt_hit};
    if (is_refused) rsp.status = replay_status_q;
    else if (mpt_done) rsp.status = check_status;
    else if (!mtt_found) rsp.status = rn_msg_pkg::PTE_BAD_KEY;
    else if (!hand_out) rsp.status = rn_msg_pkg::PTE_ABORT;
    else rsp.status = rn_msg_pkg::PTE_OK;
    if (mtt_found) begin
      rsp.pa = pa;
      rsp.bytes = (request.length < 32'(to_end)) ? request.length : 32'(to_end);
    end
    if (hand_out) rsp.epoch = {7'd0, epoch};
  end

  logic [RequestSlots-1:0] freed;
  logic [1:0]              result_waits;
  logic [2*64-1:0]         result_cycles;

  rn_pte_results #(
    .Slots (RequestSlots)
  ) u_results (
    .clk_i,
    .rst_ni,
    .cycle_i,
    .push_i             (finish),
    .push_client_i      (request.client),
    .push_slot_i        (slot),
    .push_ready_cycle_i (finish_cycle),
    .push_rsp_i         (rsp),
    .valid_o            (rsp_valid_o),
    .rsp_o              (rsp_o),
    .ready_i            (rsp_ready_i),
    .freed_o            (freed),
    .waits_o            (result_waits),
    .ready_cycles_o     (result_cycles)
  );

  // The list on which the request is put: the last of it, if there is one, gets a successor.
  logic                link;
  logic [SlotBits-1:0] link_slot, mpt_stalled_last, mtt_stalled_last;
  logic                mpt_stall_linked, mtt_stall_linked, mpt_stalled_any_d;
  logic                mtt_stalled_any_d, slots_full_d;

  always_comb begin
    link = mpt_join || mtt_join || mpt_stall_linked || mtt_stall_linked;
    if (mpt_join) link_slot = mpt_match_last;
    else if (mtt_join) link_slot = mtt_match_last;
    else if (mpt_stall) link_slot = mpt_stalled_last;
    else link_slot = mtt_stalled_last;
  end

  rn_pte_slots #(
    .Slots (RequestSlots)
  ) u_slots (
    .clk_i,
    .rst_ni,
    .free_o          (slot_free),
    .free_slot_o     (new_slot),
    .full_d_o        (slots_full_d),
    .accept_i        (take_new),
    .request_i       (new_request),
    .freed_i         (freed),
    .slot_i          (old_slot),
    .request_o       (old_request),
    .passed_o        (old_passed),
    .is_mtt_o        (old_is_mtt),
    .counted_o       (old_counted),
    .next_o          (next_slot),
    .park_i          (parked),
    .park_slot_i     (slot),
    .park_mtt_i      (mtt_look),
    .park_counted_i  (!mpt_stall && !mtt_stall),
    .park_passed_i   (mpt_pass),
    .passed_i        (passed),
    .link_i          (link),
    .link_slot_i     (link_slot),
    .restart_i       (inval_take),
    .restart_index_i (mpt_number),
    .restart_all_i   (flush)
  );

  rn_pte_stalled #(
    .Slots (RequestSlots)
  ) u_mpt_stalled (
    .clk_i,
    .rst_ni,
    .append_i      (mpt_stall),
    .append_slot_i (slot),
    .is_linked_o   (mpt_stall_linked),
    .last_o        (mpt_stalled_last),
    .take_i        (take_mpt),
    .first_o       (mpt_stalled_first),
    .next_i        (next_slot),
    .retry_i       (mpt_receive),
    .may_try_o     (mpt_may_try),
    .any_d_o       (mpt_stalled_any_d)
  );

  rn_pte_stalled #(
    .Slots (RequestSlots)
  ) u_mtt_stalled (
    .clk_i,
    .rst_ni,
    .append_i      (mtt_stall),
    .append_slot_i (slot),
    .is_linked_o   (mtt_stall_linked),
    .last_o        (mtt_stalled_last),
    .take_i        (take_mtt),
    .first_o       (mtt_stalled_first),
    .next_i        (next_slot),
    .retry_i       (mtt_receive),
    .may_try_o     (mtt_may_try),
    .any_d_o       (mtt_stalled_any_d)
  );

  // -- Arrivals. --

  logic       is_fill_mpt, is_fill_ok, is_entry_live, is_fill_stale;
  logic [7:0] fill_status;

  assign is_fill_mpt = 32'(dma_rsp_i.token) < MptMisses;
  assign mpt_receive = fill_take && is_fill_mpt;
  assign mtt_receive = fill_take && !is_fill_mpt;
  assign mtt_receive_idx = MttIdxBits'(32'(dma_rsp_i.token) - MptMisses);
  assign is_fill_ok = dma_rsp_i.status == rn_msg_pkg::DMA_OK;
  // A free entry may be made live at any time: it is not kept.
  assign is_entry_live = dma_rsp_data_i[7:0] != '0;
  assign is_fill_stale = is_fill_mpt ? mpt_stale : mtt_stale;

  assign mpt_fill_line.access = dma_rsp_data_i[15:8];
  assign mpt_fill_line.log_page_bytes = dma_rsp_data_i[23:16];
  assign mpt_fill_line.key = dma_rsp_data_i[63:32];
  assign mpt_fill_line.pd = dma_rsp_data_i[95:64];
  assign mpt_fill_line.start_va = dma_rsp_data_i[191:128];
  assign mpt_fill_line.length = dma_rsp_data_i[255:192];
  assign mpt_fill_line.mtt_index = dma_rsp_data_i[319:256];

  always_comb begin
    if (is_fill_stale) fill_status = rn_msg_pkg::PTE_OK;
    else if (!is_fill_ok) fill_status = rn_msg_pkg::PTE_ABORT;
    else if (is_fill_mpt && !is_entry_live) fill_status = rn_msg_pkg::PTE_BAD_KEY;
    else fill_status = rn_msg_pkg::PTE_OK;
  end
  assign mpt_install = mpt_receive && !mpt_stale && fill_status == rn_msg_pkg::PTE_OK;
  assign mtt_install = mtt_receive && !mtt_stale && fill_status == rn_msg_pkg::PTE_OK;
  assign mpt_fail = mpt_receive && fill_status != rn_msg_pkg::PTE_OK;
  assign mtt_fail = mtt_receive && fill_status != rn_msg_pkg::PTE_OK;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) replay_busy_q <= 1'b0;
    else if (fill_take) replay_busy_q <= 1'b1;
    else if (take_replay && replay_first_q == replay_last_q) replay_busy_q <= 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (fill_take) begin
      replay_first_q <= is_fill_mpt ? mpt_fill_first : mtt_fill_first;
      replay_last_q <= is_fill_mpt ? mpt_fill_last : mtt_fill_last;
      replay_stale_q <= is_fill_stale;
      replay_status_q <= fill_status;
      replay_cycle_q <= cycle_i + 64'(FillCycles);
    end else if (take_replay) begin
      replay_first_q <= next_slot;
    end
  end

  // -- Reads. --

  logic        start, send, is_send_mpt, has_read, is_read_due;
  logic [63:0] read_cycle;

  assign start = mpt_start || mtt_start;
  assign send = dma_req_valid_o && dma_req_ready_i;
  assign mpt_send = send && is_send_mpt;
  assign mtt_send = send && !is_send_mpt;

  rn_pte_reads #(
    .MptMisses      (MptMisses),
    .MttMisses      (MttMisses),
    .MttLineEntries (MttLineEntries)
  ) u_reads (
    .clk_i,
    .rst_ni,
    .cycle_i,
    .start_i       (start),
    .start_mpt_i   (mpt_start),
    .start_idx_i   (mpt_start ? IdxBits'(mpt_free_idx) : IdxBits'(mtt_free_idx)),
    .start_cycle_i (mpt_start ? mpt_cycle : mtt_cycle),
    .base_i        (base_q),
    .hold_i        (base_take),
    .valid_o       (dma_req_valid_o),
    .req_o         (dma_req_o),
    .ready_i       (dma_req_ready_i),
    .is_mpt_o      (is_send_mpt),
    .idx_o         (send_idx),
    .mpt_number_i  (mpt_send_number),
    .mtt_number_i  (mtt_send_number),
    .waits_o       (has_read),
    .due_o         (is_read_due),
    .cycle_o       (read_cycle)
  );
  assign mpt_send_idx = MptIdxBits'(send_idx);
  assign mtt_send_idx = MttIdxBits'(send_idx);

  // -- What is told about it. --

  logic is_blocked, is_untaken, is_tag_stall;

  assign is_blocked = |(rsp_valid_o & ~rsp_ready_i);
  assign is_untaken = |(req_valid_i & ~req_ready_o);
  assign is_tag_stall = mpt_stalled_any_d || mtt_stalled_any_d || (slots_full_d && is_untaken);
  always_comb begin
    if (is_blocked) stall_o = rn_msg_pkg::STALL_OUTPUT;
    else if (is_tag_stall) stall_o = rn_msg_pkg::STALL_TAG;
    else if (mpt_any_d || mtt_any_d) stall_o = rn_msg_pkg::STALL_MISS;
    else if (inval_active_d) stall_o = rn_msg_pkg::STALL_LOCK;
    else stall_o = rn_msg_pkg::STALL_NONE;
  end

  logic [DropBits-1:0] dropped;
  always_comb begin
    dropped = flush ? DropBits'(mpt_count) + DropBits'(mtt_count) : DropBits'(mpt_inval_drop);
    for (int unsigned w = 0; w < MttWays; w++) dropped = dropped + DropBits'(walk_hits[w]);
  end

  always_comb begin
    events_o = '0;
    events_o.busy_cycles = lookup ? 16'(IntervalCycles) : '0;
    events_o.mpt_hits = mpt_found && !counted;
    events_o.mpt_misses = mpt_start;
    events_o.mpt_merges = mpt_join && !counted;
    events_o.mtt_hits = mtt_found && !mtt_counted;
    events_o.mtt_misses = mtt_start;
    events_o.mtt_merges = mtt_join && !mtt_counted;
    events_o.translations = hand_out;
    events_o.checks = finish && rsp.status == rn_msg_pkg::PTE_OK && !hand_out;
    events_o.bad_key = $bits(events_o.bad_key)'(finish && rsp.status == rn_msg_pkg::PTE_BAD_KEY);
    events_o.bad_pd = finish && rsp.status == rn_msg_pkg::PTE_BAD_PD;
    events_o.bad_access = finish && rsp.status == rn_msg_pkg::PTE_BAD_ACCESS;
    events_o.bad_bounds = finish && rsp.status == rn_msg_pkg::PTE_BAD_BOUNDS;
    events_o.aborts = $bits(events_o.aborts)'(finish && rsp.status == rn_msg_pkg::PTE_ABORT);
    events_o.invalidations = inval_take;
    events_o.invalidated_lines = 32'(dropped);
    events_o.stale_fills = fill_take && is_fill_stale;
  end

  always_comb begin
    lookup_o = '0;
    lookup_o.mpt_number = 64'(mpt_number);
    lookup_o.mtt_number = 64'(mtt_number);
    lookup_o.has_victim = mpt_start ? mpt_victim_valid : mtt_start && mtt_victim_valid;
    lookup_o.victim = mpt_start ? 64'(mpt_victim_number) : 64'(mtt_victim_number);
    lookup_o.has_drop = mpt_inval_drop;
    lookup_o.drop_number = 64'(mpt_number);
    drop_valid_o = walk_hits;
    for (int unsigned w = 0; w < MttWays; w++) begin
      drop_number_o[w*64 +: 64] = 64'(mtt_numbers[w*MttNumberBits +: MttNumberBits]);
    end
  end

  // -- When the block has to be clocked again. --

  logic        is_active, wants_lookup;
  logic [63:0] lookup_cycle;

  assign is_active = base_take || release_valid_i || inval_take || walk || fill_take || lookup ||
                     send || (rsp_valid_o & rsp_ready_i) != '0 ||
                     (inval_done_valid_o && inval_done_ready_i);
  assign wants_lookup = replay_busy_q || is_stalled_first || (slot_free && req_valid_i != '0);
  assign lookup_cycle = (replay_busy_q && replay_cycle_q > next_lookup_q) ? replay_cycle_q :
                                                                           next_lookup_q;

  rn_pte_wake u_wake (
    .cycle_i,
    .active_i (is_active),
    .want_i   ({wants_lookup, has_read && (dma_req_ready_i || !is_read_due),
                result_waits & (rsp_ready_i | ~rsp_valid_o)}),
    .due_i    ({lookup_cycle, read_cycle, result_cycles}),
    .idle_o,
    .wake_o
  );

  logic unused;
  assign unused = ^{release_i.epoch[7:1], base_q.log_mpts[7:6], base_q.log_mtts[7:6],
                    mpt_numbers, mpt_stale, mpt_valid, mpt_fill_set,
                    mtt_fill_set, dma_rsp_data_i, walk_set};

  `RN_ASSERT(OneLookup, $onehot0({take_replay, take_mtt, take_mpt, take_new}))
  `RN_ASSERT(OneUser, $onehot0({base_take, inval_take, fill_take, lookup}))
  `RN_ASSERT(OnePlace, $onehot0({mpt_start, mpt_join, mpt_stall, mtt_start, mtt_join, mtt_stall,
                                 finish}))
  `RN_ASSERT(ReadIsValid, !(lookup && mpt_match) || mpt_hit)
  `RN_ASSERT(TranslationReadIsValid, !(mtt_look && mtt_match) || mtt_hit)
  `RN_ASSERT(LegalStatus, rsp.status <= rn_msg_pkg::PTE_ABORT)
  `RN_ASSERT(MptsInRange, !base_take || base_i.log_mpts < 64)
  `RN_ASSERT(MttsInRange, !base_take || 32'(base_i.log_mtts) <= rn_pte_cache_pkg::MttIndexBits)
  `RN_ASSERT(TokenInRange, !fill_take || 32'(dma_rsp_i.token) < Misses)
  `RN_ASSERT(EpochInRange, !release_valid_i || release_i.epoch < 2)
  `RN_ASSERT(FilledIsValid, !(mpt_install && !mpt_valid[mpt_fill_way]))
  `RN_ASSERT(FilledTranslationIsValid, !(mtt_install && !mtt_valid[mtt_fill_way]))
  `RN_ASSERT_INIT(LatenciesRange, MptCycles >= 1 && MttCycles >= 1 && FillCycles >= 1)
  `RN_ASSERT_INIT(IntervalRange, IntervalCycles >= 1)
  `RN_ASSERT_INIT(LinePow2, MttLineEntries > 0 && (MttLineEntries & (MttLineEntries - 1)) == 0)
  `RN_ASSERT_INIT(LineRange, MttLineEntries <= 64)
  `RN_ASSERT_INIT(SlotsRange, RequestSlots >= 1 && RequestSlots <= 4096)
  `RN_ASSERT_INIT(MissesRange, MptMisses >= 1 && MttMisses >= 1)
endmodule
