/*
 * From the tree to values: every getter makes its key legal, checks what is given, and leaves
 * the effective value and its help in the tree, from where it is shown and hashed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/config_node.h"

static void mark_asked(struct rn_config_node *parent, struct rn_config_node *child,
		       const char *help)
{
	if (child->asked)
		return;
	child->asked = ++parent->asked_count;
	child->help = help;
}

/* Child @key, made when it is not given. */
static struct rn_config_node *ask(struct rn_config *config, struct rn_config_node *parent,
				  const char *key, enum rn_config_kind kind, const char *help)
{
	struct rn_config_node *child = rn_config_find(parent, key);

	if (!child) {
		child = rn_config_node_new(config, kind);
		child->key = rn_config_keep(config, rn_strdup(key));
		rn_config_append(parent, child);
	}
	mark_asked(parent, child, help);
	return child;
}

static bool is_given(const struct rn_config_node *node)
{
	return node->place.file || node->key_place.file;
}

static const char *what_is(const struct rn_config_node *node)
{
	if (node->kind == RN_CONFIG_MAPPING)
		return "a section";
	return node->kind == RN_CONFIG_LIST ? "a list" : "a value";
}

static void complain(struct rn_config *config, const struct rn_config_node *node, char *message)
{
	rn_config_complain(config, rn_config_where(node), node, message);
	free(message);
}

/* As ask(), for keys whose value must be a mapping or list: after a mistake, an empty one. */
static struct rn_config_node *ask_inner(struct rn_config *config, struct rn_config_node *parent,
					const char *key, enum rn_config_kind kind, const char *help)
{
	struct rn_config_node *child = ask(config, parent, key, kind, help);

	if (child->kind == kind)
		return child;
	complain(config, child,
		 rn_asprintf("must be a %s, not %s",
			     kind == RN_CONFIG_LIST ? "list" : "section with keys",
			     what_is(child)));

	struct rn_config_node *empty = rn_config_node_new(config, kind);

	empty->asked = child->asked;
	empty->help = child->help;
	rn_config_replace(parent, child, empty);
	return empty;
}

struct rn_config_node *rn_config_section(struct rn_config *config, struct rn_config_node *parent,
					 const char *key, const char *help)
{
	return ask_inner(config, parent, key, RN_CONFIG_MAPPING, help);
}

struct rn_config_node *rn_config_list(struct rn_config *config, struct rn_config_node *parent,
				      const char *key, const char *help)
{
	return ask_inner(config, parent, key, RN_CONFIG_LIST, help);
}

bool rn_config_has(const struct rn_config_node *parent, const char *key)
{
	const struct rn_config_node *child = rn_config_find(parent, key);

	return child && is_given(child);
}

size_t rn_config_length(const struct rn_config_node *list)
{
	return list->count;
}

void rn_config_fill(struct rn_config *config, struct rn_config_node *list, size_t count)
{
	while (!is_given(list) && list->count < count)
		rn_config_append(list, rn_config_node_new(config, RN_CONFIG_MAPPING));
}

struct rn_config_node *rn_config_at(struct rn_config *config, struct rn_config_node *list,
				    size_t idx)
{
	struct rn_config_node *child = list->children[idx];

	mark_asked(list, child, NULL);
	if (child->kind == RN_CONFIG_MAPPING)
		return child;
	complain(config, child, rn_asprintf("must be a section with keys, not %s", what_is(child)));
	child = rn_config_node_new(config, RN_CONFIG_MAPPING);
	child->parent = list;
	child->asked = list->children[idx]->asked;
	list->children[idx] = child;
	return child;
}

/* With as many digits as the number needs; a limit of 2^64 as the integer below. */
static char *number_text(const struct rn_param_desc *row, double value)
{
	char *text = NULL;
	int digits = 1;

	if (row->type != RN_PARAM_f64)
		return value >= 0x1p64 ? rn_asprintf("%" PRIu64, UINT64_MAX)
				       : rn_asprintf("%.0f", value);
	/* No exponent where nobody would write one. */
	bool is_usual = value >= 1e-4 && value < 1e15;

	do {
		free(text);
		text = rn_asprintf("%.*g", digits, value);
	} while ((strtod(text, NULL) != value || (is_usual && strchr(text, 'e'))) && digits++ < 17);
	return text;
}

static char *legal_text(const struct rn_param_desc *row)
{
	if (row->type == RN_PARAM_bool)
		return rn_strdup("true or false");

	char *min = number_text(row, row->min);
	char *max = number_text(row, row->max);
	char *text = rn_asprintf("%s to %s%s%s", min, max, *row->unit ? " " : "", row->unit);

	free(min);
	free(max);
	return text;
}

/* Decimal or 0x digits, single underscores between them. */
static bool to_integer(const char *text, uint64_t *value)
{
	bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char digits[80];
	size_t count = 0;
	char *end;

	for (const char *in = text + 2 * is_hex; *in; in++) {
		if (*in == '_') {
			if (!count || in[-1] == '_' || !in[1])
				return false;
			continue;
		}
		if (!strchr(is_hex ? "0123456789abcdefABCDEF" : "0123456789", *in) ||
		    count == sizeof(digits) - 1)
			return false;
		digits[count++] = *in;
	}
	digits[count] = '\0';
	errno = 0;
	*value = strtoull(digits, &end, is_hex ? 16 : 10);
	if (errno == ERANGE)
		*value = UINT64_MAX;
	return count && !*end && errno != ERANGE;
}

static bool to_number(const char *text, double *value)
{
	char *end;

	if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
		return false;
	errno = 0;
	*value = strtod(text, &end);
	return !*end && errno != ERANGE;
}

/* Store what @text says in @field when it is legal. */
static bool store(const struct rn_param_desc *row, const char *text, void *field)
{
	uint64_t integer;
	double number;

	switch (row->type) {
	case RN_PARAM_bool:
		if (strcmp(text, "true") && strcmp(text, "false"))
			return false;
		memcpy(field, &(rn_param_bool){!strcmp(text, "true")}, sizeof(rn_param_bool));
		return true;
	case RN_PARAM_f64:
		if (!to_number(text, &number) || number < row->min || number > row->max)
			return false;
		memcpy(field, &number, sizeof(number));
		return true;
	case RN_PARAM_u32:
	case RN_PARAM_u64:
		break;
	}
	if (!to_integer(text, &integer) || (double)integer < row->min || (double)integer > row->max)
		return false;
	if (row->type == RN_PARAM_u64) {
		memcpy(field, &integer, sizeof(integer));
		return true;
	}
	if (integer > UINT32_MAX)
		return false;
	memcpy(field, &(rn_param_u32){(rn_param_u32)integer}, sizeof(rn_param_u32));
	return true;
}

static const char *kind_text(enum rn_param_type type)
{
	if (type == RN_PARAM_bool)
		return "";
	return type == RN_PARAM_f64 ? "a number from " : "an integer from ";
}

static char *value_text(const struct rn_param_desc *row, const void *field)
{
	uint64_t integer;

	if (row->type == RN_PARAM_u64) {
		memcpy(&integer, field, sizeof(integer));
		return rn_asprintf("%" PRIu64, integer);
	}

	const struct rn_param_desc at_field = {.type = row->type};
	double value = rn_param_value(&at_field, field);

	return row->type == RN_PARAM_bool ? rn_strdup(value != 0 ? "true" : "false")
					  : number_text(row, value);
}

static void bind_row(struct rn_config *config, struct rn_config_node *section,
		     const struct rn_param_desc *row, void *field)
{
	struct rn_config_node *node = ask(config, section, row->key, RN_CONFIG_SCALAR, NULL);
	char *legal = legal_text(row);

	if (!node->help)
		node->help = rn_config_keep(config, rn_asprintf("%s; %s", legal, row->help));
	if (is_given(node) && node->kind != RN_CONFIG_SCALAR)
		complain(config, node,
			 rn_asprintf("must be %s%s, not %s", kind_text(row->type), legal,
				     what_is(node)));
	else if (is_given(node) && (!node->is_plain || !store(row, node->text, field)))
		complain(config, node,
			 rn_asprintf("must be %s%s, not %s%s%s", kind_text(row->type), legal,
				     node->is_plain ? "" : "\"",
				     node->is_plain && !*node->text ? "empty" : node->text,
				     node->is_plain ? "" : "\""));
	free(legal);
	node->value = rn_config_keep(config, value_text(row, field));
}

void rn_config_bind(struct rn_config *config, struct rn_config_node *section,
		    const struct rn_param_table *table, void *params)
{
	rn_params_set_defaults(table, params);
	for (size_t i = 0; i < table->count; i++)
		bind_row(config, section, &table->rows[i], (char *)params + table->rows[i].offset);
}

/* The scalar given at @key, NULL when there is none or it is a section or list, a mistake. */
static const char *given_text(struct rn_config *config, const struct rn_config_node *node,
			      const char *legal)
{
	if (!is_given(node))
		return NULL;
	if (node->kind == RN_CONFIG_SCALAR)
		return node->text;
	complain(config, node, rn_asprintf("must be %s, not %s", legal, what_is(node)));
	return NULL;
}

static char *quoted(const char *text)
{
	char *quoted = rn_calloc(2 * strlen(text) + 3, 1);
	char *out = quoted;

	*out++ = '"';
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			*out++ = '\\';
		*out++ = *text;
	}
	*out = '"';
	return quoted;
}

const char *rn_config_string(struct rn_config *config, struct rn_config_node *section,
			     const char *key, const char *def, const char *help)
{
	struct rn_config_node *node = ask(config, section, key, RN_CONFIG_SCALAR, help);
	const char *text = given_text(config, node, "a string");

	if (!text && !def && !is_given(node))
		complain(config, node, rn_strdup("is required and missing"));
	for (const char *c = text ? text : ""; *c; c++)
		if ((unsigned char)*c < ' ') {
			complain(config, node,
				 rn_strdup("must be a string without control characters"));
			text = NULL;
			break;
		}
	if (!text)
		text = def ? def : "";
	node->value = rn_config_keep(config, quoted(text));
	return rn_config_keep(config, rn_strdup(text));
}

static char *joined(const char *const *names, const char *between, const char *last)
{
	char *text = rn_strdup(names[0]);

	for (size_t i = 1; names[i]; i++) {
		char *longer = rn_asprintf("%s%s%s", text, names[i + 1] ? between : last, names[i]);

		free(text);
		text = longer;
	}
	return text;
}

int rn_config_choose(struct rn_config *config, struct rn_config_node *section,
		     const struct rn_config_choice *choice)
{
	struct rn_config_node *node = ask(config, section, choice->key, RN_CONFIG_SCALAR, NULL);
	char *legal = joined(choice->names, ", ", " or ");
	const char *text = given_text(config, node, legal);
	int chosen = choice->def;
	int idx = 0;

	if (!node->help)
		node->help = rn_config_keep(config, rn_asprintf("%s; %s", legal, choice->help));
	while (text && choice->names[idx] && strcmp(choice->names[idx], text))
		idx++;
	if (text && choice->names[idx])
		chosen = idx;
	else if (text)
		complain(config, node, rn_asprintf("must be %s, not %s", legal, text));
	free(legal);
	node->value = rn_config_keep(config, rn_strdup(choice->names[chosen]));
	return chosen;
}

static void report_unknown(struct rn_config *config, const struct rn_config_node *mapping,
			   const struct rn_config_node *unknown)
{
	const char **known = rn_calloc(mapping->count + 1, sizeof(*known));
	size_t count = 0;
	char *message;

	for (unsigned asked = 1; asked <= mapping->asked_count; asked++)
		for (size_t i = 0; i < mapping->count; i++)
			if (mapping->children[i]->asked == asked)
				known[count++] = mapping->children[i]->key;

	const char *nearest = rn_config_nearest(unknown->key, known, count);
	char *legal = count ? joined(known, ", ", ", ") : rn_strdup("none");

	message = nearest ? rn_asprintf("unknown key; did you mean %s?", nearest)
			  : rn_asprintf("unknown key; legal here: %s", legal);
	rn_config_complain(config, unknown->key_place, unknown, message);
	free(message);
	free(legal);
	free(known);
}

static void check_asked(struct rn_config *config, const struct rn_config_node *node)
{
	for (size_t i = 0; i < node->count; i++) {
		/* A section where a value belongs has been reported as such. */
		if (node->children[i]->value)
			continue;
		if (node->children[i]->asked)
			check_asked(config, node->children[i]);
		else if (node->kind == RN_CONFIG_MAPPING)
			report_unknown(config, node, node->children[i]);
	}
}

bool rn_config_finish(struct rn_config *config)
{
	check_asked(config, config->root);
	return rn_diag_count(config->diag) == config->diag_before;
}
