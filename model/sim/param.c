#include "sim/param.h"

#include <string.h>

#include "base/assert.h"

static void store(const struct rn_param_desc *row, void *params, double value)
{
	char *field = (char *)params + row->offset;

	switch (row->type) {
	case RN_PARAM_u32:
		memcpy(field, &(rn_param_u32){(rn_param_u32)value}, sizeof(rn_param_u32));
		break;
	case RN_PARAM_u64:
		memcpy(field, &(rn_param_u64){(rn_param_u64)value}, sizeof(rn_param_u64));
		break;
	case RN_PARAM_f64:
		memcpy(field, &value, sizeof(value));
		break;
	case RN_PARAM_bool:
		memcpy(field, &(rn_param_bool){value != 0}, sizeof(rn_param_bool));
		break;
	}
}

void rn_params_set_defaults(const struct rn_param_table *table, void *params)
{
	memset(params, 0, table->struct_bytes);
	for (size_t i = 0; i < table->count; i++)
		store(&table->rows[i], params, table->rows[i].def);
}

double rn_param_value(const struct rn_param_desc *row, const void *params)
{
	const char *field = (const char *)params + row->offset;
	rn_param_u32 u32;
	rn_param_u64 u64;
	rn_param_f64 f64;
	rn_param_bool flag;

	switch (row->type) {
	case RN_PARAM_u32:
		memcpy(&u32, field, sizeof(u32));
		return u32;
	case RN_PARAM_u64:
		memcpy(&u64, field, sizeof(u64));
		return (double)u64;
	case RN_PARAM_f64:
		memcpy(&f64, field, sizeof(f64));
		return f64;
	case RN_PARAM_bool:
		memcpy(&flag, field, sizeof(flag));
		return flag;
	}
	RN_ASSERT(!"a parameter row has a known type");
	return 0;
}
