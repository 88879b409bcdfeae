// SPDX-License-Identifier: GPL-2.0-only
// Behaves as its parameters say: held up, failing, complaining, or with a device that is there before init returns.
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

static bool init_holds;
module_param(init_holds, bool, 0444);
MODULE_PARM_DESC(init_holds, "init takes until let_go is set");
static bool exit_holds;
module_param(exit_holds, bool, 0444);
MODULE_PARM_DESC(exit_holds, "exit takes until let_go is set");
static bool let_go;
module_param(let_go, bool, 0644);
MODULE_PARM_DESC(let_go, "ends what holds, once");
static int result;
module_param(result, int, 0444);
MODULE_PARM_DESC(result, "what init returns");
static bool complain;
module_param(complain, bool, 0444);
MODULE_PARM_DESC(complain, "init ends with a warning of the kernel");
static bool crash;
module_param(crash, bool, 0444);
MODULE_PARM_DESC(crash, "init ends with an oops");
static int list[4];
static int listed;
module_param_array(list, int, &listed, 0444);
MODULE_PARM_DESC(list, "up to four numbers");
static char *text = "";
module_param(text, charp, 0444);
MODULE_PARM_DESC(text, "any text");
static unsigned int rounded = 8;
module_param(rounded, uint, 0444);
MODULE_PARM_DESC(rounded, "a number that init rounds to a multiple of eight");

static const struct file_operations kmm_odd_operations = {
	.owner = THIS_MODULE,
};

static struct miscdevice kmm_odd_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kmm_odd",
	.fops = &kmm_odd_operations,
};

// Ten minutes are more than any test waits, and less than for ever.
static void hold(bool holds)
{
	int rest = 12000;

	while (holds && !READ_ONCE(let_go) && --rest)
		msleep(50);
	let_go = false;
}

static int __init kmm_odd_init(void)
{
	int error = misc_register(&kmm_odd_device);

	if (error)
		return error;
	rounded &= ~7u;
	hold(init_holds);
	WARN(complain, "kmm_odd: something is not as it should be\n");
	if (crash)
		*(volatile int *)8 = 1;
	if (result < 0)
		misc_deregister(&kmm_odd_device);
	return result;
}

static void __exit kmm_odd_exit(void)
{
	hold(exit_holds);
	misc_deregister(&kmm_odd_device);
}

module_init(kmm_odd_init);
module_exit(kmm_odd_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("kmm-tools test module that misbehaves as told");
MODULE_VERSION("1");
