"""What rdma-core's suite tries with UD queue pairs alone, tried with RC queue pairs: posts that must fail."""

import pyverbs.enums as e
import tests.utils as u
from tests import base, test_qpex


class RcTest(base.RDMATestCase):
    """Two connected RC queue pairs of the extended kind, as those of the suite."""

    def setUp(self):
        super().setUp()
        self.iters = 10
        self.client, self.server = (test_qpex.QpExRCSend(**self.dev_info) for _ in range(2))
        self.client.pre_run(self.server.psns, self.server.qps_num)
        self.server.pre_run(self.client.psns, self.client.qps_num)

    def test_post_receive_in_reset_fails(self):
        u.post_rq_state_bad_flow(self)

    def test_post_send_in_reset_fails(self):
        u.post_sq_state_bad_flow(self)

    def test_full_receive_queue(self):
        u.full_rq_bad_flow(self)

    def test_receive_with_too_many_entries(self):
        u.create_rq_with_larger_sgl_bad_flow(self)

    def test_traffic_after_a_queue_pair_came_back_from_reset(self):
        u.traffic(self.client, self.server, self.iters, self.gid_index, self.ib_port, new_send=True,
                  send_op=e.IBV_QP_EX_WITH_SEND)
        for side in (self.client, self.server):
            side.qps[0].modify(base.QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
        self.client.to_rts()
        self.server.to_rts()
        u.traffic(self.client, self.server, self.iters, self.gid_index, self.ib_port, new_send=True,
                  send_op=e.IBV_QP_EX_WITH_SEND)

    def test_query_data_in_order(self):
        self.assertIn(self.client.qps[0].query_data_in_order(e.IBV_WR_SEND), (0, 1))
