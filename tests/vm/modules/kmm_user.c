// SPDX-License-Identifier: GPL-2.0-only
// Depends on kmm_dep.
#include <linux/init.h>
#include <linux/module.h>

extern int kmm_dep_answer(void);

static int __init kmm_user_init(void)
{
	pr_info("kmm_user: the answer is %d\n", kmm_dep_answer());
	return 0;
}

static void __exit kmm_user_exit(void)
{
	pr_info("kmm_user: gone\n");
}

module_init(kmm_user_init);
module_exit(kmm_user_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module with a dependency");
MODULE_VERSION("1");
