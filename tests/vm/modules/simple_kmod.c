// SPDX-License-Identifier: GPL-2.0-only
// Says hello and goodbye: the plainest of the two modules of a kmods-via-containers instance.
#include <linux/init.h>
#include <linux/module.h>

static int __init simple_init(void)
{
	pr_info("simple-kmod: hello\n");
	return 0;
}

static void __exit simple_exit(void)
{
	pr_info("simple-kmod: goodbye\n");
}

module_init(simple_init);
module_exit(simple_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module of a kmods-via-containers instance");
MODULE_VERSION("dd1a7d4");
