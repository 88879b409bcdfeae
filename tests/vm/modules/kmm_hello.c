// SPDX-License-Identifier: GPL-2.0-only
// The module under upgrade. KMM_HELLO_VERSION is replaced in the text, so that each build has a srcversion of its own.
#include <linux/init.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

static char *greeting = "hello";
module_param(greeting, charp, 0444);
MODULE_PARM_DESC(greeting, "what the module says when it is loaded");

static int __init kmm_hello_init(void)
{
	pr_info("kmm_hello: %s from version @KMM_HELLO_VERSION@\n", greeting);
	return 0;
}

static void __exit kmm_hello_exit(void)
{
	pr_info("kmm_hello: goodbye from version @KMM_HELLO_VERSION@\n");
}

module_init(kmm_hello_init);
module_exit(kmm_hello_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module");
MODULE_VERSION("@KMM_HELLO_VERSION@");
