// Register reads, one at a time. A read waits for all writes that came before it: those in the
// fifo, and those that are visible at the port when the read becomes visible.

`include "rn_assert.svh"

module rn_doorbell_read #(
  parameter int unsigned LatencyCycles = 8,
  parameter int unsigned CountWidth = 7, // of the fifo's fill level
  localparam int unsigned LevelWidth = 16
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic [63:0]                  cycle_i,
  // The writes before it.
  input  logic [CountWidth-1:0]        held_count_i,
  input  logic [LevelWidth-1:0]        write_level_i,
  input  logic                         decodes_i,
  // The registers' values, this cycle's writes included.
  input  rn_msg_pkg::doorbell_identity_t identity_i,
  input  logic [63:0]                  cmd_base_i,
  input  logic [31:0]                  status_i,
  // Ports.
  input  logic                         read_valid_i,
  input  rn_msg_pkg::mmio_read_t       read_i,
  output logic                         read_ready_o,
  output logic                         rsp_valid_o,
  output rn_msg_pkg::mmio_read_rsp_t   rsp_o,
  input  logic                         rsp_ready_i,
  // A read has become visible; and the cycle from which a read can be answered.
  output logic                         begins_o,
  output logic                         is_waiting_o,
  output logic [63:0]                  ready_cycle_o
);

  localparam int unsigned WaitWidth = (CountWidth > LevelWidth ? CountWidth : LevelWidth) + 1;

  logic is_waiting_d, is_waiting_q;
  logic [63:0] ready_cycle_d, ready_cycle_q;
  // Writes to be decoded before the read.
  logic [WaitWidth-1:0] behind_d, behind_q, all;
  logic is_due, answers;
  logic [31:0] low, high;

  assign all = is_waiting_q ? behind_q :
      WaitWidth'(held_count_i) + WaitWidth'(write_level_i);
  assign behind_d = all == '0 ? '0 : all - WaitWidth'(decodes_i);
  assign is_due = is_waiting_q && behind_d == '0 && cycle_i >= ready_cycle_q;
  assign begins_o = read_valid_i && !is_waiting_q;
  assign rsp_valid_o = read_valid_i && is_due;
  assign answers = rsp_valid_o && rsp_ready_i;
  assign read_ready_o = is_due && rsp_ready_i;
  assign is_waiting_d = (is_waiting_q || read_valid_i) && !answers;
  assign ready_cycle_d = begins_o ? cycle_i + 64'(LatencyCycles) : ready_cycle_q;
  assign is_waiting_o = is_waiting_q;
  assign ready_cycle_o = ready_cycle_q;

  rn_doorbell_registers u_low (
    .offset_i  (read_i.offset),
    .identity_i,
    .cmd_base_i,
    .status_i,
    .value_o   (low)
  );

  rn_doorbell_registers u_high (
    .offset_i  (read_i.offset + 64'd4),
    .identity_i,
    .cmd_base_i,
    .status_i,
    .value_o   (high)
  );

  always_comb begin
    rsp_o.tag = read_i.tag;
    rsp_o.value = '1;
    if (read_i.len == 32'd4) rsp_o.value = {32'd0, low};
    else if (read_i.len == 32'd8 && read_i.offset[2:0] == '0) rsp_o.value = {high, low};
  end

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      is_waiting_q <= 1'b0;
      ready_cycle_q <= '0;
      behind_q <= '0;
    end else begin
      is_waiting_q <= is_waiting_d;
      ready_cycle_q <= ready_cycle_d;
      behind_q <= behind_d;
    end
  end

  `RN_ASSERT(ReadStaysVisible, !is_waiting_q || read_valid_i)
  `RN_ASSERT_INIT(LatencyIsLegal, LatencyCycles >= 1)

endmodule
