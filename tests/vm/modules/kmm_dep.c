// SPDX-License-Identifier: GPL-2.0-only
// Exports the symbol that kmm_user needs.
#include <linux/export.h>
#include <linux/init.h>
#include <linux/module.h>

int kmm_dep_answer(void)
{
	return 42;
}
EXPORT_SYMBOL_GPL(kmm_dep_answer);

static int __init kmm_dep_init(void)
{
	pr_info("kmm_dep: ready\n");
	return 0;
}

static void __exit kmm_dep_exit(void)
{
	pr_info("kmm_dep: gone\n");
}

module_init(kmm_dep_init);
module_exit(kmm_dep_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module that others depend on");
MODULE_VERSION("1");
