// What the parts of the doorbell unit tell each other.
package rn_doorbell_pkg;

  localparam int unsigned PageWidth = 12;
  localparam int unsigned QpnWidth = 24;
  localparam int unsigned PiWidth = 16;
  localparam int unsigned PieceWidth = 512;
  // Pieces of a BlueFlame WQE; the last one is never stored.
  localparam int unsigned MaxPieces = 4;

  // What a posted write is, told from its address and size when it is taken in.
  typedef enum logic [3:0] {
    KIND_ILLEGAL = 4'd0,
    KIND_SQ_DOORBELL = 4'd1,
    KIND_CQ_ARM = 4'd2,
    KIND_RQ_KICK = 4'd3,
    KIND_BLUEFLAME_FIRST = 4'd4,
    KIND_BLUEFLAME_LATER = 4'd5,
    KIND_CMD_BASE_LO = 4'd6,
    KIND_CMD_BASE_HI = 4'd7,
    KIND_CMD_BASE = 4'd8,
    KIND_CMD_DOORBELL = 4'd9
  } kind_e;

  // A write as the fifo holds it, without the time at which it is ready.
  typedef struct packed {
    kind_e kind;
    logic [PageWidth-1:0] page;
    logic buffer;
    logic [1:0] piece;
    logic [PieceWidth-1:0] data;
  } held_t;

  localparam int unsigned HeldWidth = 4 + PageWidth + 1 + 2 + PieceWidth;

endpackage
