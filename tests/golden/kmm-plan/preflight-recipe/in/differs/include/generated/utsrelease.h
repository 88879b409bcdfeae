/* SPDX-License-Identifier: Apache-2.0 */
#define UTS_RELEASE "6.1.0-100-demo"
