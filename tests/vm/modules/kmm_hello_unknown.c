// SPDX-License-Identifier: GPL-2.0-only
// Built as kmm_hello.ko: needs a symbol that nothing exports.
#include <linux/init.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

extern int kmm_symbol_nobody_exports(void);

static char *greeting = "hello";
module_param(greeting, charp, 0444);

static int __init kmm_hello_init(void)
{
	return kmm_symbol_nobody_exports();
}

static void __exit kmm_hello_exit(void)
{
}

module_init(kmm_hello_init);
module_exit(kmm_hello_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module with an unknown symbol");
MODULE_VERSION("2");
