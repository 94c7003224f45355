/* The effective configuration as YAML, with comments for people or without for the hash. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim/config_node.h"

#define COMMENT_COLUMN 40

struct printer {
	FILE *out;
	bool has_comments;
};

static const struct rn_config_node *asked_as(const struct rn_config_node *mapping, unsigned asked)
{
	for (size_t i = 0; i < mapping->count; i++)
		if (mapping->children[i]->asked == asked)
			return mapping->children[i];
	return NULL;
}

static void print_origin(const struct printer *printer, const struct rn_config_node *node)
{
	if (!node->place.file)
		fputs("[default] ", printer->out);
	else if (!node->place.line)
		fprintf(printer->out, "[%s] ", node->place.file);
	else
		fprintf(printer->out, "[%s:%u] ", node->place.file, node->place.line);
}

static void print_scalar(const struct printer *printer, const struct rn_config_node *node,
			 int column)
{
	column += fprintf(printer->out, "%s: %s", node->key, node->value);
	if (printer->has_comments) {
		int gap = column < COMMENT_COLUMN ? COMMENT_COLUMN - column : 2;

		fprintf(printer->out, "%*s# ", gap, "");
		print_origin(printer, node);
		fputs(node->help ? node->help : "", printer->out);
	}
	fputc('\n', printer->out);
}

static void print_mapping(const struct printer *printer, const struct rn_config_node *mapping,
			  unsigned indent, bool is_entry);

static void print_list(const struct printer *printer, const struct rn_config_node *list,
		       unsigned indent)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct rn_config_node *entry = list->children[i];

		if (entry->kind != RN_CONFIG_MAPPING || !entry->asked_count) {
			fprintf(printer->out, "%*s- {}\n", (int)indent, "");
			continue;
		}
		fprintf(printer->out, "%*s- ", (int)indent, "");
		print_mapping(printer, entry, indent + 2, true);
	}
}

static void print_inner(const struct printer *printer, const struct rn_config_node *node,
			unsigned indent)
{
	bool is_list = node->kind == RN_CONFIG_LIST;
	bool is_empty = is_list ? !node->count : !node->asked_count;

	fprintf(printer->out, "%s:%s", node->key, !is_empty ? "" : is_list ? " []" : " {}");
	if (printer->has_comments && node->help)
		fprintf(printer->out, "  # %s", node->help);
	fputc('\n', printer->out);
	if (is_empty)
		return;
	if (is_list)
		print_list(printer, node, indent + 2);
	else
		print_mapping(printer, node, indent + 2, false);
}

static void print_mapping(const struct printer *printer, const struct rn_config_node *mapping,
			  unsigned indent, bool is_entry)
{
	for (unsigned asked = 1; asked <= mapping->asked_count; asked++) {
		const struct rn_config_node *node = asked_as(mapping, asked);

		if (node->is_left_out && !printer->has_comments)
			continue;
		/* The first key of a list's entry stands behind its dash. */
		fprintf(printer->out, "%*s", is_entry && asked == 1 ? 0 : (int)indent, "");
		if (node->value)
			print_scalar(printer, node, (int)indent);
		else
			print_inner(printer, node, indent);
	}
}

void rn_config_print(const struct rn_config *config, FILE *out)
{
	struct printer printer = {.out = out, .has_comments = true};

	print_mapping(&printer, config->root, 0, false);
}

char *rn_config_canonical(const struct rn_config *config)
{
	struct printer printer = {.has_comments = false};
	char *text = NULL;
	size_t bytes;

	printer.out = open_memstream(&text, &bytes);
	if (!printer.out)
		return rn_strdup("");
	print_mapping(&printer, config->root, 0, false);
	fclose(printer.out);
	return text;
}

void rn_config_leave_out(struct rn_config_node *section)
{
	section->is_left_out = true;
}

uint64_t rn_config_hash(const struct rn_config *config)
{
	char *text = rn_config_canonical(config);
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = text; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	free(text);
	return hash;
}
