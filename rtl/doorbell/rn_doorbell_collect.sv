// BlueFlame: WQEs of several pieces are collected here, by doorbell page and buffer, until their
// last piece is there. When all entries are in use the oldest gives way to a new one and only its
// ring goes on.
//
// All of it is decided in the cycle in which the write is decoded. Where a ring has to go on first
// nothing but the end of an abandoned collection happens before ring_done_i.

`include "rn_assert.svh"

module rn_doorbell_collect #(
  parameter int unsigned Buffers = 16,
  localparam int unsigned PageWidth = rn_doorbell_pkg::PageWidth,
  localparam int unsigned QpnWidth = rn_doorbell_pkg::QpnWidth,
  localparam int unsigned PiWidth = rn_doorbell_pkg::PiWidth,
  localparam int unsigned PieceWidth = rn_doorbell_pkg::PieceWidth
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  // The write being decoded.
  input  logic                   is_first_i,
  input  logic                   is_later_i,
  input  logic [PageWidth-1:0]   page_i,
  input  logic                   buffer_i,
  input  logic [1:0]             piece_i,
  input  logic [PieceWidth-1:0]  data_i,
  output logic                   is_illegal_o,
  output logic                   ends_old_o, // an unfinished WQE of the same buffer is given up
  // The ring that has to go on with it, if any.
  output logic                   wants_ring_o,
  output logic                   ring_evicts_o, // it is that of the oldest, which gives way
  output logic [QpnWidth-1:0]    ring_qpn_o,
  output logic [PageWidth-1:0]   ring_page_o,
  output logic [PiWidth-1:0]     ring_pi_o,
  input  logic                   ring_done_i,
  // The whole WQE, offered with its ring.
  output logic                   has_wqe_o,
  output logic [PiWidth-1:0]     wqe_idx_o,
  output logic [2:0]             wqe_pieces_o,
  output logic [rn_doorbell_pkg::MaxPieces*PieceWidth-1:0] wqe_data_o
);

  localparam int unsigned IdxWidth = Buffers > 1 ? $clog2(Buffers) : 1;
  localparam int unsigned CountWidth = $clog2(Buffers + 1);
  localparam int unsigned StoredPieces = rn_doorbell_pkg::MaxPieces - 1;

  localparam int unsigned TagWidth = PageWidth + 1;
  localparam int unsigned WqeWidth = QpnWidth + PiWidth + 2;

  // An entry: its page and buffer, how many entries are older, which WQE it is and its last piece,
  // and the number of its next piece.
  logic [Buffers-1:0] valid_d, valid_q;
  logic [Buffers*TagWidth-1:0] tag_d, tag_q;
  logic [Buffers*CountWidth-1:0] older_d, older_q;
  logic [WqeWidth-1:0] wqe_mem[Buffers];
  logic [1:0] next_mem[Buffers];
  logic [CountWidth-1:0] count_d, count_q;

  logic [Buffers-1:0] match, unused, oldest;
  logic [IdxWidth-1:0] match_idx, unused_idx, oldest_idx, claim_idx, release_idx;
  logic [IdxWidth-1:0] next_idx;
  logic has_match, has_unused;
  logic [QpnWidth-1:0] match_qpn, oldest_qpn;
  logic [PiWidth-1:0] match_wqe_idx, oldest_wqe_idx;
  logic [1:0] match_last, match_next, oldest_last;
  logic [CountWidth-1:0] release_older;
  logic [PageWidth-1:0] oldest_page;

  logic [7:0] new_segments;
  logic [QpnWidth-1:0] new_qpn;
  logic [PiWidth-1:0] new_wqe_idx;
  logic [1:0] new_last;
  logic is_new, is_single, is_next, is_last;
  logic claims, stores, releases;

  // The first piece: its ctrl segment tells the length in segments of 16 bytes, 1 .. 16.
  assign new_wqe_idx = data_i[16+:PiWidth];
  assign {new_qpn, new_segments} = data_i[32+:QpnWidth+8];
  assign new_last = 2'((new_segments[4:0] - 5'd1) >> 2);
  assign is_new = is_first_i && new_segments != 8'd0 && new_segments <= 8'd16;
  assign is_single = is_new && new_last == 2'd0;

  // Entries.
  always_comb begin
    match = '0;
    oldest = '0;
    match_idx = '0;
    oldest_idx = '0;
    for (int unsigned i = 0; i < Buffers; i++) begin
      match[i] = valid_q[i] && tag_q[i*TagWidth+:TagWidth] == {page_i, buffer_i};
      oldest[i] = valid_q[i] && older_q[i*CountWidth+:CountWidth] == '0;
      if (match[i]) match_idx = match_idx | IdxWidth'(i);
      if (oldest[i]) oldest_idx = oldest_idx | IdxWidth'(i);
    end
  end

  assign {match_qpn, match_wqe_idx, match_last} = wqe_mem[match_idx];
  assign {oldest_qpn, oldest_wqe_idx, oldest_last} = wqe_mem[oldest_idx];
  assign match_next = next_mem[match_idx];
  assign has_match = |match;
  assign ends_old_o = is_new && has_match;
  assign unused = ~valid_q | (ends_old_o ? match : '0);
  assign has_unused = |unused;

  always_comb begin
    unused_idx = '0;
    for (int unsigned i = Buffers; i > 0; i--) begin
      if (unused[i-1]) unused_idx = IdxWidth'(i - 1);
    end
  end

  // What happens.
  assign is_next = is_later_i && has_match && piece_i == match_next;
  assign is_last = is_next && piece_i == match_last;
  assign is_illegal_o = (is_first_i && !is_new) || (is_later_i && !is_next);
  assign ring_evicts_o = is_new && !is_single && !has_unused;
  assign wants_ring_o = is_single || is_last || ring_evicts_o;
  assign has_wqe_o = is_single || is_last;
  assign claims = is_new && !is_single && (has_unused || ring_done_i);
  assign claim_idx = has_unused ? unused_idx : oldest_idx;
  assign stores = is_next && !is_last;
  assign releases = ends_old_o || (ring_done_i && (is_last || ring_evicts_o));
  assign release_idx = ring_evicts_o ? oldest_idx : match_idx;

  always_comb begin
    ring_qpn_o = match_qpn;
    ring_page_o = page_i;
    wqe_idx_o = match_wqe_idx;
    wqe_pieces_o = 3'(match_last) + 3'd1;
    if (is_single) begin
      ring_qpn_o = new_qpn;
      wqe_idx_o = new_wqe_idx;
      wqe_pieces_o = 3'd1;
    end else if (ring_evicts_o) begin
      ring_qpn_o = oldest_qpn;
      ring_page_o = oldest_page;
      wqe_idx_o = oldest_wqe_idx;
      wqe_pieces_o = 3'(oldest_last) + 3'd1;
    end
    ring_pi_o = wqe_idx_o + PiWidth'(wqe_pieces_o);
  end

  always_comb begin
    oldest_page = '0;
    release_older = '0;
    for (int unsigned i = 0; i < Buffers; i++) begin
      if (oldest[i]) oldest_page = oldest_page | tag_q[i*TagWidth+1+:PageWidth];
      if (release_idx == IdxWidth'(i)) begin
        release_older = release_older | older_q[i*CountWidth+:CountWidth];
      end
    end
  end

  assign count_d = count_q - CountWidth'(releases) + CountWidth'(claims);

  always_comb begin
    for (int unsigned i = 0; i < Buffers; i++) begin
      valid_d[i] = valid_q[i] && !(releases && release_idx == IdxWidth'(i));
      tag_d[i*TagWidth+:TagWidth] = tag_q[i*TagWidth+:TagWidth];
      older_d[i*CountWidth+:CountWidth] = older_q[i*CountWidth+:CountWidth] -
          CountWidth'(releases && older_q[i*CountWidth+:CountWidth] > release_older);
      if (claims && claim_idx == IdxWidth'(i)) begin
        valid_d[i] = 1'b1;
        tag_d[i*TagWidth+:TagWidth] = {page_i, buffer_i};
        older_d[i*CountWidth+:CountWidth] = count_q - CountWidth'(releases);
      end
    end
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      valid_q <= '0;
      count_q <= '0;
    end else begin
      valid_q <= valid_d;
      count_q <= count_d;
    end
  end

  // What an unused entry says does not matter.
  always_ff @(posedge clk_i) begin
    tag_q <= tag_d;
    older_q <= older_d;
  end

  always_ff @(posedge clk_i) begin
    if (claims) wqe_mem[claim_idx] <= {new_qpn, new_wqe_idx, new_last};
  end

  assign next_idx = claims ? claim_idx : match_idx;
  always_ff @(posedge clk_i) begin
    if (claims || stores) next_mem[next_idx] <= claims ? 2'd1 : match_next + 2'd1;
  end

  // Pieces: the last one comes straight from the fifo, so there is no memory for a fourth.
  for (genvar g = 0; g < StoredPieces; g++) begin : gen_piece
    logic [PieceWidth-1:0] mem[Buffers];
    logic write;
    logic [IdxWidth-1:0] write_idx;

    assign write = g == 0 ? claims : stores && piece_i == 2'(g);
    assign write_idx = g == 0 ? claim_idx : match_idx;

    always_ff @(posedge clk_i) begin
      if (write) mem[write_idx] <= data_i;
    end

    // A collected WQE has more than one piece.
    if (g == 0) begin : gen_first
      assign wqe_data_o[PieceWidth-1:0] = is_single ? data_i : mem[match_idx];
    end else begin : gen_later
      assign wqe_data_o[g*PieceWidth+:PieceWidth] =
          is_single || 2'(g) > match_last ? '0 : 2'(g) < match_last ? mem[match_idx] : data_i;
    end
  end
  assign wqe_data_o[StoredPieces*PieceWidth+:PieceWidth] =
      !is_single && match_last == 2'(StoredPieces) ? data_i : '0;

  `RN_ASSERT(MatchIsOneHot, $onehot0(match))
  `RN_ASSERT(OldestIsOneHot, count_q == '0 || $onehot(oldest))
  `RN_ASSERT(CountIsThatOfEntries, 32'($countones(valid_q)) == 32'(count_q))
  `RN_ASSERT(OneKindOfPiece, !(is_first_i && is_later_i))
  `RN_ASSERT_INIT(AnyBuffer, Buffers >= 1)

endmodule
