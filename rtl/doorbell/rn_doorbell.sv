// Doorbell unit: turns posted writes to BAR0 into messages and answers register reads, in the same
// cycles as the C block of model/nic/doorbell. A write is told apart when it is taken in, waits in
// the fifo for its latency, and is carried out in one cycle unless the port behind is busy.

`include "rn_assert.svh"

module rn_doorbell #(
  parameter int unsigned FifoEntries = 64,
  parameter int unsigned IntervalCycles = 1,
  parameter int unsigned DecodeLatencyCycles = 4,
  parameter int unsigned ReadLatencyCycles = 8,
  parameter int unsigned BlueflameBuffers = 16,
  parameter int unsigned Recover = 0, // 1: keep send queue rings while their port is busy
  parameter int unsigned MaxQps = 16384,
  localparam int unsigned DataWidth = rn_doorbell_pkg::MaxPieces * rn_doorbell_pkg::PieceWidth
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,
  input  logic [63:0]                    cycle_i, // number of the present cycle
  input  rn_msg_pkg::doorbell_identity_t identity_i,
  // In.
  input  logic                           status_valid_i,
  input  rn_msg_pkg::hca_status_t        status_i,
  output logic                           status_ready_o,
  input  logic                           mmio_write_valid_i,
  input  rn_msg_pkg::mmio_write_t        mmio_write_i,
  output logic                           mmio_write_ready_o,
  input  logic [15:0]                    mmio_write_level_i, // writes visible at the port
  input  logic                           mmio_read_valid_i,
  input  rn_msg_pkg::mmio_read_t         mmio_read_i,
  output logic                           mmio_read_ready_o,
  // Out.
  output logic                           mmio_read_rsp_valid_o,
  output rn_msg_pkg::mmio_read_rsp_t     mmio_read_rsp_o,
  input  logic                           mmio_read_rsp_ready_i,
  output logic                           sq_ring_valid_o,
  output rn_msg_pkg::sq_ring_t           sq_ring_o,
  input  logic                           sq_ring_ready_i,
  // Not taken at once, it is withdrawn.
  output logic                           blueflame_valid_o,
  output rn_msg_pkg::blueflame_t         blueflame_o,
  output logic [DataWidth-1:0]           blueflame_data_o,
  input  logic                           blueflame_ready_i,
  output logic                           cq_ring_valid_o,
  output rn_msg_pkg::cq_ring_t           cq_ring_o,
  input  logic                           cq_ring_ready_i,
  // Not taken at once, it may be withdrawn.
  output logic                           rq_ring_valid_o,
  output rn_msg_pkg::rq_ring_t           rq_ring_o,
  input  logic                           rq_ring_ready_i,
  output logic                           cmd_ring_valid_o,
  output rn_msg_pkg::cmd_ring_t          cmd_ring_o,
  input  logic                           cmd_ring_ready_i,
  // Account.
  output rn_msg_pkg::doorbell_events_t   events_o,
  output rn_msg_pkg::stall_e             stall_o,
  // No register would change now; and in how many cycles time alone will make one change (all ones:
  // never).
  output logic                           idle_o,
  output logic [31:0]                    wake_o
);

  localparam int unsigned CountWidth = $clog2(FifoEntries + 1);
  localparam int unsigned PageWidth = rn_doorbell_pkg::PageWidth;
  localparam int unsigned QpnWidth = rn_doorbell_pkg::QpnWidth;
  localparam int unsigned PiWidth = rn_doorbell_pkg::PiWidth;

  // Taking in.
  rn_doorbell_pkg::held_t new_held, held;
  logic [63:0] next_take_cycle_d, next_take_cycle_q, held_ready_cycle;
  logic [CountWidth-1:0] held_count;
  logic is_empty, is_full, is_interval_over, takes;

  // Decoding.
  logic is_ready, decodes, is_illegal;
  logic is_sq, is_arm, is_kick, is_command, is_first, is_later;
  logic blueflame_illegal, ends_old, blueflame_wants_ring, ring_evicts, has_wqe;
  logic [QpnWidth-1:0] number, blueflame_qpn, ring_qpn;
  logic [PageWidth-1:0] blueflame_page, ring_page;
  logic [PiWidth-1:0] blueflame_pi, ring_pi, wqe_idx;
  logic [2:0] wqe_pieces;
  logic wants_ring, ring_done, ring_keeps, ring_looks_up, ring_refused, sends_kept_ring;
  logic kick_done, kick_keeps, kick_looks_up, kick_refused, sends_kept_kick;
  logic offers_wqe;
  logic [QpnWidth-1:0] sq_qpn, rq_qpn;
  logic [23:0] arm_ci;
  logic [PageWidth-1:0] sq_page, rq_page;
  logic [PiWidth-1:0] sq_pi;
  logic unused_kick_pi;

  // Registers.
  logic [63:0] cmd_base_d, cmd_base_q;
  logic [31:0] status_d, status_q;
  logic has_command_d, has_command_q, sends_command;
  rn_msg_pkg::cmd_ring_t command_d, command_q, command;

  // Reads.
  logic read_begins, read_is_waiting, read_answers;
  logic [63:0] read_ready_cycle;
  logic is_busy;
  logic [31:0] decode_wake, read_wake, earlier_wake;

  // A place freed in this cycle is used in the next.
  assign is_interval_over = cycle_i >= next_take_cycle_q;
  assign mmio_write_ready_o = !is_full && is_interval_over;
  assign takes = mmio_write_valid_i && mmio_write_ready_o;
  assign next_take_cycle_d = takes ? cycle_i + 64'(IntervalCycles) : next_take_cycle_q;

  rn_doorbell_predecode u_predecode (
    .write_i(mmio_write_i),
    .held_o (new_held)
  );

  rn_doorbell_fifo #(
    .Entries(FifoEntries)
  ) u_fifo (
    .clk_i,
    .rst_ni,
    .push_i            (takes),
    .push_held_i       (new_held),
    .push_ready_cycle_i(cycle_i + 64'(DecodeLatencyCycles)),
    .pop_i             (decodes),
    .held_o            (held),
    .ready_cycle_o     (held_ready_cycle),
    .is_empty_o        (is_empty),
    .is_full_o         (is_full),
    .count_o           (held_count)
  );

  assign is_ready = !is_empty && cycle_i >= held_ready_cycle;
  assign is_sq = is_ready && held.kind == rn_doorbell_pkg::KIND_SQ_DOORBELL;
  assign is_arm = is_ready && held.kind == rn_doorbell_pkg::KIND_CQ_ARM;
  assign is_kick = is_ready && held.kind == rn_doorbell_pkg::KIND_RQ_KICK;
  assign is_first = is_ready && held.kind == rn_doorbell_pkg::KIND_BLUEFLAME_FIRST;
  assign is_later = is_ready && held.kind == rn_doorbell_pkg::KIND_BLUEFLAME_LATER;
  assign is_command = is_ready && held.kind == rn_doorbell_pkg::KIND_CMD_DOORBELL;
  assign is_illegal = (is_ready && held.kind == rn_doorbell_pkg::KIND_ILLEGAL) || blueflame_illegal;
  assign number = held.data[QpnWidth-1:0];

  always_comb begin
    decodes = is_ready;
    if (wants_ring) decodes = ring_done;
    else if (is_arm) decodes = cq_ring_ready_i;
    else if (is_kick) decodes = kick_done || kick_refused;
  end

  rn_doorbell_collect #(
    .Buffers(BlueflameBuffers)
  ) u_collect (
    .clk_i,
    .rst_ni,
    .is_first_i   (is_first),
    .is_later_i   (is_later),
    .page_i       (held.page),
    .buffer_i     (held.buffer),
    .piece_i      (held.piece),
    .data_i       (held.data),
    .is_illegal_o (blueflame_illegal),
    .ends_old_o   (ends_old),
    .wants_ring_o (blueflame_wants_ring),
    .ring_evicts_o(ring_evicts),
    .ring_qpn_o   (blueflame_qpn),
    .ring_page_o  (blueflame_page),
    .ring_pi_o    (blueflame_pi),
    .ring_done_i  (ring_done),
    .has_wqe_o    (has_wqe),
    .wqe_idx_o    (wqe_idx),
    .wqe_pieces_o (wqe_pieces),
    .wqe_data_o   (blueflame_data_o)
  );

  // Send queue rings.
  assign wants_ring = is_sq || blueflame_wants_ring;
  assign ring_qpn = is_sq ? number : blueflame_qpn;
  assign ring_page = is_sq ? held.page : blueflame_page;
  assign ring_pi = is_sq ? held.data[32+:PiWidth] : blueflame_pi;

  if (Recover != 0) begin : gen_keep_rings
    rn_doorbell_kept #(
      .MaxQps (MaxQps),
      .PiWidth(PiWidth)
    ) u_kept_rings (
      .clk_i,
      .rst_ni,
      .want_i      (wants_ring),
      .qpn_i       (ring_qpn),
      .page_i      (ring_page),
      .pi_i        (ring_pi),
      .done_o      (ring_done),
      .keeps_o     (ring_keeps),
      .looks_up_o  (ring_looks_up),
      .refuses_o   (ring_refused),
      .valid_o     (sq_ring_valid_o),
      .qpn_o       (sq_qpn),
      .page_o      (sq_page),
      .pi_o        (sq_pi),
      .ready_i     (sq_ring_ready_i),
      .sends_kept_o(sends_kept_ring)
    );
  end else begin : gen_stall_rings
    assign ring_done = wants_ring && sq_ring_ready_i;
    assign ring_keeps = 1'b0;
    assign ring_looks_up = 1'b0;
    assign ring_refused = wants_ring && !sq_ring_ready_i;
    assign sq_ring_valid_o = wants_ring;
    assign sq_qpn = ring_qpn;
    assign sq_page = ring_page;
    assign sq_pi = ring_pi;
    assign sends_kept_ring = 1'b0;
  end

  assign sq_ring_o.qpn = 32'(sq_qpn);
  assign sq_ring_o.uar_page = 32'(sq_page);
  assign sq_ring_o.pi = sq_pi;

  // BlueFlame data goes with its ring or not at all.
  assign offers_wqe = has_wqe && ring_done;
  assign blueflame_valid_o = offers_wqe;
  assign blueflame_o.qpn = 32'(blueflame_qpn);
  assign blueflame_o.uar_page = 32'(blueflame_page);
  assign blueflame_o.wqe_idx = wqe_idx;
  assign blueflame_o.bytes = {7'd0, wqe_pieces, 6'd0};
  assign blueflame_o.buf_idx = '0;

  // Completion queue arms.
  assign cq_ring_valid_o = is_arm;
  assign arm_ci = held.data[32+:24];
  assign cq_ring_o.cqn = 32'(number);
  assign cq_ring_o.uar_page = 32'(held.page);
  assign cq_ring_o.ci = 32'(arm_ci);
  assign cq_ring_o.solicited = 8'(held.data[24]);
  assign cq_ring_o.sn = 8'(held.data[28+:2]);

  // Receive queue kicks.
  rn_doorbell_kept #(
    .MaxQps      (MaxQps),
    .PiWidth     (1),
    .DropsRefused(1'b1)
  ) u_kept_kicks (
    .clk_i,
    .rst_ni,
    .want_i      (is_kick),
    .qpn_i       (number),
    .page_i      (held.page),
    .pi_i        (1'b0),
    .done_o      (kick_done),
    .keeps_o     (kick_keeps),
    .looks_up_o  (kick_looks_up),
    .refuses_o   (kick_refused),
    .valid_o     (rq_ring_valid_o),
    .qpn_o       (rq_qpn),
    .page_o      (rq_page),
    .pi_o        (unused_kick_pi),
    .ready_i     (rq_ring_ready_i),
    .sends_kept_o(sends_kept_kick)
  );

  assign rq_ring_o.qpn = 32'(rq_qpn);
  assign rq_ring_o.uar_page = 32'(rq_page);

  // Command unit: the newest producer index counts.
  always_comb begin
    cmd_base_d = cmd_base_q;
    if (is_ready) begin
      unique case (held.kind)
        rn_doorbell_pkg::KIND_CMD_BASE:    cmd_base_d = held.data[63:0];
        rn_doorbell_pkg::KIND_CMD_BASE_LO: cmd_base_d[31:0] = held.data[31:0];
        rn_doorbell_pkg::KIND_CMD_BASE_HI: cmd_base_d[63:32] = held.data[31:0];
        default:                           cmd_base_d = cmd_base_q;
      endcase
    end
  end

  assign command = is_command ? {cmd_base_q, held.data[31:0]} : command_q;
  assign cmd_ring_valid_o = is_command || has_command_q;
  assign cmd_ring_o = command;
  assign sends_command = cmd_ring_valid_o && cmd_ring_ready_i;
  assign has_command_d = cmd_ring_valid_o && !cmd_ring_ready_i;
  assign command_d = command;

  assign status_ready_o = 1'b1;
  assign status_d = status_valid_i ? status_i.value : status_q;

  rn_doorbell_read #(
    .LatencyCycles(ReadLatencyCycles),
    .CountWidth   (CountWidth)
  ) u_read (
    .clk_i,
    .rst_ni,
    .cycle_i,
    .held_count_i (held_count),
    .write_level_i(mmio_write_level_i),
    .decodes_i    (decodes),
    .identity_i,
    .cmd_base_i   (cmd_base_d),
    .status_i     (status_d),
    .read_valid_i (mmio_read_valid_i),
    .read_i       (mmio_read_i),
    .read_ready_o (mmio_read_ready_o),
    .rsp_valid_o  (mmio_read_rsp_valid_o),
    .rsp_o        (mmio_read_rsp_o),
    .rsp_ready_i  (mmio_read_rsp_ready_i),
    .begins_o     (read_begins),
    .is_waiting_o (read_is_waiting),
    .ready_cycle_o(read_ready_cycle)
  );

  assign read_answers = mmio_read_valid_i && mmio_read_ready_o;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      next_take_cycle_q <= '0;
      cmd_base_q <= '0;
      status_q <= '0;
      has_command_q <= 1'b0;
      command_q <= '0;
    end else begin
      next_take_cycle_q <= next_take_cycle_d;
      cmd_base_q <= cmd_base_d;
      status_q <= status_d;
      has_command_q <= has_command_d;
      command_q <= command_d;
    end
  end

  // Account.
  assign is_busy = status_valid_i || sends_kept_ring || sends_kept_kick || decodes ||
                   ring_looks_up || kick_looks_up || sends_command || takes || read_answers;

  always_comb begin
    events_o = '0;
    events_o.busy_cycles = is_busy;
    events_o.sq_doorbells = ring_done;
    events_o.blueflame_wqes = offers_wqe && blueflame_ready_i;
    events_o.blueflame_dropped = 2'(ends_old) + 2'(ring_evicts && ring_done) +
                                 2'(offers_wqe && !blueflame_ready_i);
    events_o.cq_arms = is_arm && cq_ring_ready_i;
    events_o.rq_kicks = kick_done || kick_refused;
    events_o.rq_kicks_dropped = kick_refused;
    events_o.commands = is_command;
    events_o.reads = read_answers;
    events_o.kept = ring_keeps || kick_keeps;
    events_o.illegal_writes = is_illegal;
  end

  assign stall_o = ring_refused || (is_arm && !cq_ring_ready_i) ? rn_msg_pkg::STALL_OUTPUT
                                                                : rn_msg_pkg::STALL_NONE;

  // Gating.
  assign idle_o = !is_busy && !read_begins && !ends_old;

  // Deadlines are never further away than the latencies, so the lower halves tell the distance.
  assign decode_wake = !is_empty && held_ready_cycle > cycle_i ?
                       held_ready_cycle[31:0] - cycle_i[31:0] : '1;
  assign read_wake = read_is_waiting && read_ready_cycle > cycle_i ?
                     read_ready_cycle[31:0] - cycle_i[31:0] : '1;
  assign earlier_wake = read_wake < decode_wake ? read_wake : decode_wake;

  if (IntervalCycles > 1) begin : gen_take_wake
    logic [31:0] take_wake;
    assign take_wake = !is_full && next_take_cycle_q > cycle_i ?
                       next_take_cycle_q[31:0] - cycle_i[31:0] : '1;
    assign wake_o = take_wake < earlier_wake ? take_wake : earlier_wake;
  end else begin : gen_no_take_wake
    assign wake_o = earlier_wake;
  end

  if (Recover != 0) begin : gen_recover_assert
    // A newer producer index may replace the one offered.
    `RN_ASSERT_STABLE(SqRingStays, sq_ring_valid_o, sq_ring_ready_i, {sq_qpn, sq_page},
                      QpnWidth + PageWidth)
  end else begin : gen_stall_assert
    `RN_ASSERT_STABLE(SqRingStays, sq_ring_valid_o, sq_ring_ready_i, {sq_qpn, sq_page, sq_pi},
                      QpnWidth + PageWidth + PiWidth)
  end
  `RN_ASSERT_STABLE(CqRingStays, cq_ring_valid_o, cq_ring_ready_i, cq_ring_o,
                    112)
  `RN_ASSERT_STABLE(ReadRspStays, mmio_read_rsp_valid_o, mmio_read_rsp_ready_i,
                    mmio_read_rsp_o.tag, 32)
  `RN_ASSERT(CmdRingStays, !has_command_q || cmd_ring_valid_o)
  `RN_ASSERT(KindIsLegal, is_empty || held.kind <= rn_doorbell_pkg::KIND_CMD_DOORBELL)
  `RN_ASSERT(BlueflameGoesWithItsRing, !blueflame_valid_o || events_o.sq_doorbells)
  `RN_ASSERT(LevelFitsValid, mmio_write_valid_i == (mmio_write_level_i != '0))
  `RN_ASSERT_INIT(ParametersAreLegal,
                  FifoEntries >= 1 && IntervalCycles >= 1 && DecodeLatencyCycles >= 1 &&
                  ReadLatencyCycles >= 1 && BlueflameBuffers >= 1 && Recover <= 1)

endmodule
