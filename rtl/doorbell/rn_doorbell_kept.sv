// A port and the doorbells kept for it, at most one for each QP: what cannot go out waits here, a
// newer doorbell of the same QP replaces the older one, and they leave in order of their arrival. A
// port for which doorbells are kept is theirs.
//
// Two memories, both read at the clock edge, need no clearing: the ring holds the kept doorbells in
// order, the directory tells where in the ring a QP's doorbell was put last. A QP is kept if that
// place lies between the ring's ends and the doorbell there is its own. To look that up takes a
// cycle for each memory; a doorbell that is alone needs none of it.

`include "rn_assert.svh"

module rn_doorbell_kept #(
  parameter int unsigned MaxQps = 16384,
  parameter int unsigned PiWidth = rn_doorbell_pkg::PiWidth,
  parameter bit DropsRefused = 1'b0, // a refused doorbell does not stay
  localparam int unsigned PageWidth = rn_doorbell_pkg::PageWidth,
  localparam int unsigned QpnWidth = rn_doorbell_pkg::QpnWidth
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  // A doorbell that wants to go out; it stays until done_o, or with DropsRefused until refuses_o.
  input  logic                 want_i,
  input  logic [QpnWidth-1:0]  qpn_i,
  input  logic [PageWidth-1:0] page_i,
  input  logic [PiWidth-1:0]   pi_i,
  output logic                 done_o,     // sent or kept
  output logic                 keeps_o,    // kept
  output logic                 looks_up_o, // neither yet
  output logic                 refuses_o,  // neither, and it has no place
  // The port.
  output logic                 valid_o,
  output logic [QpnWidth-1:0]  qpn_o,
  output logic [PageWidth-1:0] page_o,
  output logic [PiWidth-1:0]   pi_o,
  input  logic                 ready_i,
  output logic                 sends_kept_o
);

  localparam int unsigned IdxWidth = MaxQps > 1 ? $clog2(MaxQps) : 1;
  localparam int unsigned Places = 2 ** IdxWidth;
  localparam int unsigned KeptWidth = IdxWidth + PageWidth + PiWidth;

  typedef enum logic [1:0] {
    LOOKUP_NONE,
    LOOKUP_PLACE, // the directory has been read
    LOOKUP_DONE   // the ring as well
  } lookup_e;

  logic [IdxWidth-1:0] directory_mem[MaxQps];
  logic [KeptWidth-1:0] ring_mem[Places];

  lookup_e lookup_d, lookup_q;
  logic [IdxWidth-1:0] head_d, head_q, tail;
  logic [IdxWidth:0] count_d, count_q, left;

  // What the memories answer.
  logic [IdxWidth-1:0] place_q, found_idx, head_idx;
  logic [KeptWidth-1:0] found_q, head_mem_q, head_forward_q, head_kept;
  logic has_forward_q;
  logic [PageWidth-1:0] found_page, head_page;
  logic [PiWidth-1:0] found_pi, head_pi;

  logic is_empty, fits, is_kept, can_keep, can_decide, appends;
  logic [IdxWidth-1:0] qp_idx, write_place;
  logic [KeptWidth-1:0] write_kept;

  assign is_empty = count_q == '0;
  assign qp_idx = qpn_i[IdxWidth-1:0];
  assign fits = qpn_i < QpnWidth'(MaxQps);

  // The port.
  assign head_kept = has_forward_q ? head_forward_q : head_mem_q;
  assign {head_idx, head_page, head_pi} = head_kept;
  assign valid_o = !is_empty || want_i;
  assign qpn_o = is_empty ? qpn_i : QpnWidth'(head_idx);
  assign page_o = is_empty ? page_i : head_page;
  assign pi_o = is_empty ? pi_i : head_pi;
  assign sends_kept_o = !is_empty && ready_i;

  // The kept ones when the one that leaves in this cycle is gone.
  assign head_d = head_q + IdxWidth'(sends_kept_o);
  assign left = count_q - (IdxWidth + 1)'(sends_kept_o);
  assign tail = head_q + count_q[IdxWidth-1:0];

  // The doorbell that wants to go out.
  assign {found_idx, found_page, found_pi} = found_q;
  assign can_decide = is_empty || lookup_q == LOOKUP_DONE;
  assign is_kept = !is_empty && (IdxWidth + 1)'(IdxWidth'(place_q - head_d)) < left &&
                   found_idx == qp_idx;
  assign can_keep = fits && (!is_kept || found_page == page_i);
  assign looks_up_o = want_i && !can_decide;
  assign keeps_o = want_i && can_decide && !(is_empty && ready_i) && can_keep;
  assign refuses_o = want_i && can_decide && !(is_empty && ready_i) && !can_keep;
  assign done_o = keeps_o || (want_i && is_empty && ready_i);

  assign appends = keeps_o && !is_kept;
  assign write_place = is_kept ? place_q : tail;
  assign write_kept = {qp_idx, page_i, pi_i};
  assign count_d = left + (IdxWidth + 1)'(appends);

  always_comb begin
    lookup_d = lookup_q;
    unique case (lookup_q)
      LOOKUP_NONE:  if (looks_up_o) lookup_d = LOOKUP_PLACE;
      LOOKUP_PLACE: if (looks_up_o) lookup_d = LOOKUP_DONE;
      LOOKUP_DONE:  lookup_d = LOOKUP_DONE;
      default:      lookup_d = LOOKUP_NONE;
    endcase
    if (done_o || (DropsRefused && refuses_o)) lookup_d = LOOKUP_NONE;
  end

  always_ff @(posedge clk_i) begin
    if (appends) directory_mem[qp_idx] <= tail;
    place_q <= directory_mem[qp_idx];
  end

  always_ff @(posedge clk_i) begin
    if (keeps_o) ring_mem[write_place] <= write_kept;
    found_q <= ring_mem[place_q];
    head_mem_q <= ring_mem[head_d];
    head_forward_q <= write_kept;
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      lookup_q <= LOOKUP_NONE;
      head_q <= '0;
      count_q <= '0;
      has_forward_q <= 1'b0;
    end else begin
      lookup_q <= lookup_d;
      head_q <= head_d;
      count_q <= count_d;
      has_forward_q <= keeps_o && write_place == head_d;
    end
  end

  // Of the doorbell that is replaced the index does not count.
  logic unused;
  assign unused = ^found_pi;

  `RN_ASSERT(LookupIsLegal, lookup_q != 2'd3)
  `RN_ASSERT(KeptCountIsLegal, 32'(count_q) <= MaxQps)
  `RN_ASSERT(AppendHasPlace, !appends || 32'(left) < MaxQps)
  `RN_ASSERT(NoLookupWithoutDoorbell, lookup_q == LOOKUP_NONE || want_i)
  `RN_ASSERT_INIT(MaxQpsFitQpn, MaxQps >= 1 && MaxQps < 2 ** QpnWidth)

endmodule
