// Value of the register at an address of BAR0; all ones where there is none.

module rn_doorbell_registers (
  input  logic [63:0]                    offset_i,
  input  rn_msg_pkg::doorbell_identity_t identity_i,
  input  logic [63:0]                    cmd_base_i,
  input  logic [31:0]                    status_i,
  output logic [31:0]                    value_o
);

  always_comb begin
    unique case (offset_i)
      64'(rn_hw_pkg::REG_ID):          value_o = rn_hw_pkg::HW_ID;
      64'(rn_hw_pkg::REG_VERSION):     value_o = rn_hw_pkg::HW_INTERFACE_VERSION;
      64'(rn_hw_pkg::REG_VENDOR):      value_o = {8'd0, identity_i.vendor[23:0]};
      64'(rn_hw_pkg::REG_PART):        value_o = identity_i.part;
      64'(rn_hw_pkg::REG_HW_VERSION):  value_o = identity_i.hw_version;
      64'(rn_hw_pkg::REG_CAP_QUEUES):  value_o = identity_i.cap_queues;
      64'(rn_hw_pkg::REG_CAP_MEMORY):  value_o = identity_i.cap_memory;
      64'(rn_hw_pkg::REG_CAP_WQE):     value_o = identity_i.cap_wqe;
      64'(rn_hw_pkg::REG_CMD_BASE_LO): value_o = cmd_base_i[31:0];
      64'(rn_hw_pkg::REG_CMD_BASE_HI): value_o = cmd_base_i[63:32];
      64'(rn_hw_pkg::REG_STATUS):      value_o = status_i;
      default:                         value_o = '1;
    endcase
  end

  logic unused_vendor;
  assign unused_vendor = ^identity_i.vendor[31:24];

endmodule
