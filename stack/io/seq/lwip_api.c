/* SPDX-License-Identifier: BSD-3-Clause */
/* lwIP's sequential API: the files of its src/api that this build alone has. */
#include "../api/api_lib.c"
#include "../api/api_msg.c"
#include "../api/err.c"
#include "../api/netbuf.c"
#include "../api/tcpip.c"
