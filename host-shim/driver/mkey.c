/*
 * Memory keys: an MPT entry, a range of MTT entries and the pinned pages behind them. MRs and queue
 * buffers alike. The MTT range is filled before the key exists; pages are given back after the NIC has
 * answered that no translation is in use any more.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "driver/internal.h"

/* User addresses end here (x86-64, 4-level page tables). */
#define VA_END (UINT64_C(1) << 47)

static void unuse_pages(struct rn_mkey *mkey, uint32_t pages)
{
	for (uint32_t n = 0; n < pages; n++)
		rn_pin_unuse(mkey->client, mkey->va + (uint64_t)n * RN_FRAME_BYTES);
}

static int fill_mtt(struct rn_mkey *mkey)
{
	struct rn_driver *driver = mkey->client->driver;

	if (!mkey->pages)
		return 0;
	if (!rn_buddy_get(&driver->mtts, mkey->pages, &mkey->mtt_first))
		return ENOMEM;
	for (uint32_t n = 0; n < mkey->pages; n++) {
		uint64_t pa;

		if (!rn_pin_use(mkey->client, mkey->va + (uint64_t)n * RN_FRAME_BYTES, &pa)) {
			unuse_pages(mkey, n);
			rn_buddy_put(&driver->mtts, mkey->mtt_first, mkey->pages);
			return EINVAL;
		}
		rn_icm_set_mtt(&driver->icm, (uint64_t)mkey->mtt_first + n, pa);
	}
	return 0;
}

static int check_spec(const struct rn_driver *driver, const struct rn_mkey_spec *spec)
{
	if (!spec->length)
		return 0;
	if (spec->va >= VA_END || spec->length > VA_END - spec->va)
		return EINVAL;
	if (spec->length > driver->device.max_mr_size ||
	    spec->length > (uint64_t)UINT32_MAX * RN_FRAME_BYTES)
		return EINVAL;
	/* One page offset in both, or the frames would not line up (as ib_uverbs_reg_mr). */
	if ((spec->iova ^ spec->va) % RN_FRAME_BYTES || spec->iova + spec->length < spec->iova)
		return EINVAL;
	return 0;
}

static uint32_t pages_of(const struct rn_mkey_spec *spec)
{
	if (!spec->length)
		return 0;
	return (uint32_t)((spec->va + spec->length - 1) / RN_FRAME_BYTES -
			  spec->va / RN_FRAME_BYTES + 1);
}

static int claim(struct rn_mkey *mkey, const struct rn_mkey_spec *spec)
{
	struct rn_driver *driver = mkey->client->driver;
	uint32_t index;

	if (spec->is_mr && driver->mr_count >= driver->device.max_mr)
		return ENOMEM;
	if (!rn_ids_get(&driver->mpts, &index))
		return ENOMEM;

	const int error = fill_mtt(mkey);

	if (error) {
		rn_ids_put(&driver->mpts, index);
		return error;
	}
	/* Another variant byte each time: a stale key of the index's last owner fits nothing. */
	mkey->key = index << 8 | ++driver->variant[index];
	driver->mkey[index] = mkey;
	driver->mr_count += spec->is_mr;
	mkey->pd->users += spec->is_mr;
	return 0;
}

static void created(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_mkey *mkey = arg;
	void (*then)(void *, struct rn_mkey *, int) = mkey->then;
	void *then_arg = mkey->arg;
	const int error = rn_command_errno(status);

	(void)out;
	if (error) {
		rn_mkey_free(mkey);
		mkey = NULL;
	}
	then(then_arg, mkey, error);
}

int rn_mkey_create(struct rn_driver_client *client, const struct rn_mkey_spec *spec,
		   void (*then)(void *arg, struct rn_mkey *mkey, int error), void *arg)
{
	struct rn_driver *driver = client->driver;
	int error = check_spec(driver, spec);

	if (error)
		return error;

	struct rn_mkey *mkey = rn_calloc(1, sizeof(*mkey));

	mkey->client = client;
	mkey->pd = spec->pd;
	mkey->is_mr = spec->is_mr;
	mkey->va = spec->va / RN_FRAME_BYTES * RN_FRAME_BYTES;
	mkey->pages = pages_of(spec);
	mkey->then = then;
	mkey->arg = arg;
	rn_list_init(&mkey->link);
	error = claim(mkey, spec);
	if (error) {
		free(mkey);
		return error;
	}

	const struct rn_hw_mpt mpt = {
		.state = 1,
		.access = spec->access,
		.log_page_bytes = 12,
		.key = mkey->key,
		.pd = spec->pd->number,
		.start_va = spec->iova,
		.length = spec->length,
		.mtt_index = mkey->mtt_first,
	};

	rn_command_submit(driver, RN_CMD_CREATE_MKEY, mkey->key >> 8, &mpt, sizeof(mpt), 0, created,
			  mkey);
	return 0;
}

void rn_mkey_free(struct rn_mkey *mkey)
{
	struct rn_driver *driver = mkey->client->driver;

	unuse_pages(mkey, mkey->pages);
	if (mkey->pages)
		rn_buddy_put(&driver->mtts, mkey->mtt_first, mkey->pages);
	driver->mkey[mkey->key >> 8] = NULL;
	rn_ids_put(&driver->mpts, mkey->key >> 8);
	driver->mr_count -= mkey->is_mr;
	mkey->pd->users -= mkey->is_mr;
	rn_list_remove(&mkey->link);
	free(mkey);
}

static void destroyed(void *arg, enum rn_cmd_status status, const void *out)
{
	struct rn_mkey *mkey = arg;
	void (*then)(void *, struct rn_mkey *, int) = mkey->then;
	void *then_arg = mkey->arg;

	(void)out;
	rn_mkey_free(mkey);
	then(then_arg, NULL, rn_command_errno(status));
}

void rn_mkey_destroy(struct rn_mkey *mkey, void (*then)(void *arg, struct rn_mkey *mkey, int error),
		     void *arg)
{
	mkey->then = then;
	mkey->arg = arg;
	rn_command_submit(mkey->client->driver, RN_CMD_DESTROY_MKEY, mkey->key >> 8, NULL, 0, 0,
			  destroyed, mkey);
}

bool rn_driver_find_mtt(const struct rn_driver *driver, uint32_t key, uint64_t *first,
			uint32_t *count)
{
	const uint32_t index = key >> 8;
	const struct rn_mkey *mkey = index >> driver->icm.log_mpts ? NULL : driver->mkey[index];

	if (!mkey || mkey->key != key)
		return false;
	*first = mkey->mtt_first;
	*count = mkey->pages;
	return true;
}
