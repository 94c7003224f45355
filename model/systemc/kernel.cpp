/*
 * The clock-domain process. Within an activation the wheel runs ahead of sc_time_stamp(), never past the
 * next SystemC event; a call into a TLM socket carries that offset as its delay.
 */
#include "systemc/kernel.h"

#include <systemc>

namespace
{

/* SystemC's time as picoseconds; the resolution is the default of 1 ps. */
uint64_t now_ps()
{
	return sc_core::sc_time_stamp().value();
}

} // namespace

struct rn_kernel : public sc_core::sc_module {
	SC_HAS_PROCESS(rn_kernel);

	rn_kernel(sc_core::sc_module_name name, struct rn_sim *wheel)
	    : sc_core::sc_module(name), sim(wheel), until_ps(0), budget(0), ran(0)
	{
		SC_METHOD(drain);
		dont_initialize();
		sensitive << wake;
	}

	/* The earliest of SystemC's own events and the end of the slice. */
	uint64_t horizon_ps() const
	{
		uint64_t pending_ps = now_ps() + sc_core::sc_time_to_pending_activity(
							 sc_core::sc_get_curr_simcontext())
							 .value();

		return pending_ps > now_ps() && pending_ps < until_ps ? pending_ps : until_ps;
	}

	void drain()
	{
		uint64_t next_ps;

		ran += rn_sim_run(sim, horizon_ps(), budget - ran);
		next_ps = rn_sim_next_ps(sim);
		if (ran >= budget || next_ps > until_ps || rn_sim_is_stopped(sim)) {
			sc_core::sc_pause();
			return;
		}
		if (next_ps > now_ps())
			next_trigger(sc_core::sc_time::from_value(next_ps - now_ps()));
		else
			next_trigger(sc_core::SC_ZERO_TIME);
	}

	sc_core::sc_event wake;
	struct rn_sim *sim;
	uint64_t until_ps;
	uint64_t budget;
	uint64_t ran;
};

struct rn_kernel *rn_kernel_new(struct rn_sim *sim)
{
	sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
	return new rn_kernel("rnicsim", sim);
}

void rn_kernel_free(struct rn_kernel *kernel)
{
	delete kernel;
}

uint64_t rn_kernel_run(struct rn_kernel *kernel, uint64_t until_ps, uint64_t max_wakes)
{
	kernel->until_ps = until_ps;
	kernel->budget = max_wakes;
	kernel->ran = 0;
	kernel->wake.notify(sc_core::SC_ZERO_TIME);
	if (until_ps > now_ps())
		sc_core::sc_start(sc_core::sc_time::from_value(until_ps - now_ps()),
				  sc_core::SC_EXIT_ON_STARVATION);
	return kernel->ran;
}

/* libsystemc refers to it; the program's own main() is used. */
int sc_main(int, char **)
{
	return 0;
}
