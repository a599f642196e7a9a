/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The listener for DCPI, one for the whole process: for
 * LLVMOrcRTDyldObjectLinkingLayerRegisterJITEventListener.
 */
#ifndef LISTENER_H
#define LISTENER_H

#include <llvm-c/ExecutionEngine.h>

#ifdef __cplusplus
extern "C" {
#endif

LLVMJITEventListenerRef dbgdyn_listener(void);

#ifdef __cplusplus
}
#endif
#endif
