/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that cannot be loaded, since another one (GONE) is found nowhere. */

__attribute__((visibility("default"))) int lame(void);
__attribute__((visibility("default"))) int gone(void);

#ifdef GONE
int gone(void)
{
	return 0;
}
#else
int lame(void)
{
	return gone();
}
#endif
