// Tells from a posted write's address and size what it is, before the fifo: an entry then needs no
// address.

module rn_doorbell_predecode (
  input  rn_msg_pkg::mmio_write_t write_i,
  output rn_doorbell_pkg::held_t  held_o
);

  localparam logic [63:0] UarEnd =
      64'(rn_hw_pkg::UAR_BASE) + 64'(rn_hw_pkg::UAR_COUNT) * 64'(rn_hw_pkg::UAR_BYTES);
  localparam int unsigned PageShift = $clog2(rn_hw_pkg::UAR_BYTES);
  localparam logic [PageShift-1:0] BlueflameBegin = PageShift'(rn_hw_pkg::UAR_BLUEFLAME);
  localparam logic [PageShift-1:0] BlueflameEnd = PageShift'(
      rn_hw_pkg::UAR_BLUEFLAME + rn_hw_pkg::UAR_BLUEFLAME_COUNT * rn_hw_pkg::UAR_BLUEFLAME_BYTES);
  localparam logic [31:0] PieceBytes = rn_hw_pkg::WQEBB_BYTES;

  logic [63:0] offset;
  logic [PageShift-1:0] in_page;
  logic is_register, is_uar, is_blueflame;
  rn_doorbell_pkg::kind_e register_kind, blueflame_kind, uar_kind;

  assign offset = write_i.offset;
  // UAR_BASE is a multiple of the page size.
  assign in_page = offset[PageShift-1:0];
  assign is_register = offset < 64'(rn_hw_pkg::UAR_BASE);
  assign is_uar = !is_register && offset < UarEnd;
  assign is_blueflame = in_page >= BlueflameBegin && in_page < BlueflameEnd;

  always_comb begin
    register_kind = rn_doorbell_pkg::KIND_ILLEGAL;
    if (write_i.len == 32'd8 && offset == 64'(rn_hw_pkg::REG_CMD_BASE_LO)) begin
      register_kind = rn_doorbell_pkg::KIND_CMD_BASE;
    end else if (write_i.len == 32'd4) begin
      unique case (offset)
        64'(rn_hw_pkg::REG_CMD_BASE_LO):  register_kind = rn_doorbell_pkg::KIND_CMD_BASE_LO;
        64'(rn_hw_pkg::REG_CMD_BASE_HI):  register_kind = rn_doorbell_pkg::KIND_CMD_BASE_HI;
        64'(rn_hw_pkg::REG_CMD_DOORBELL): register_kind = rn_doorbell_pkg::KIND_CMD_DOORBELL;
        default: register_kind = rn_doorbell_pkg::KIND_ILLEGAL;
      endcase
    end
  end

  always_comb begin
    blueflame_kind = rn_doorbell_pkg::KIND_ILLEGAL;
    if (write_i.len == PieceBytes && in_page[5:0] == '0) begin
      blueflame_kind = in_page[7:6] == '0 ? rn_doorbell_pkg::KIND_BLUEFLAME_FIRST
                                          : rn_doorbell_pkg::KIND_BLUEFLAME_LATER;
    end
  end

  always_comb begin
    uar_kind = rn_doorbell_pkg::KIND_ILLEGAL;
    if (write_i.len == 32'd8) begin
      unique case (in_page)
        PageShift'(rn_hw_pkg::UAR_SQ_DOORBELL): uar_kind = rn_doorbell_pkg::KIND_SQ_DOORBELL;
        PageShift'(rn_hw_pkg::UAR_CQ_ARM):      uar_kind = rn_doorbell_pkg::KIND_CQ_ARM;
        PageShift'(rn_hw_pkg::UAR_RQ_KICK):     uar_kind = rn_doorbell_pkg::KIND_RQ_KICK;
        default: uar_kind = rn_doorbell_pkg::KIND_ILLEGAL;
      endcase
    end
  end

  always_comb begin
    held_o.kind = rn_doorbell_pkg::KIND_ILLEGAL;
    if (is_register) held_o.kind = register_kind;
    else if (is_uar) held_o.kind = is_blueflame ? blueflame_kind : uar_kind;
    // The distance from UAR_BASE in pages; its upper bits are 0 where it counts.
    held_o.page = offset[PageShift+:rn_doorbell_pkg::PageWidth]
                - rn_doorbell_pkg::PageWidth'(rn_hw_pkg::UAR_BASE >> PageShift);
    held_o.buffer = in_page[8];
    held_o.piece = in_page[7:6];
    held_o.data = write_i.data;
  end

endmodule
