// SPDX-License-Identifier: GPL-2.0-only
// Says itself what is to be loaded before it, as a driver does that has its transport in another module.
#include <linux/init.h>
#include <linux/module.h>

static int __init kmm_soft_init(void)
{
	pr_info("kmm_soft: here\n");
	return 0;
}

static void __exit kmm_soft_exit(void)
{
}

module_init(kmm_soft_init);
module_exit(kmm_soft_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module with a soft dependency");
MODULE_VERSION("1");
MODULE_SOFTDEP("pre: kmm_dep");
