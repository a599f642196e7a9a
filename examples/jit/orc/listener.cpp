/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A JIT event listener that tells DCPI of each object that LLVM has linked, and when it goes: for
 * RTDyldObjectLinkingLayer (ORC) and MCJIT. This one file is C++, as LLVM's C interface takes
 * listeners but cannot make one.
 */
#include "listener.h"

#include <dbgdyn.h>
#include <llvm/ExecutionEngine/JITEventListener.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <map>
#include <mutex>

namespace
{
class Listener : public llvm::JITEventListener
{
	std::mutex lock;
	std::map<ObjectKey, dbgdyn_handle> handles;
	dbgdyn_context context;

      public:
	Listener()
	{
		dbgdyn_begin("orc", 3, nullptr, &context);
	}
	~Listener() override
	{
		dbgdyn_end(context);
	}

	/*
	 * The sections are where they run. ORC has published the symbols just before: only where
	 * several threads compile can one be in the code already.
	 */
	void notifyObjectLoaded(ObjectKey key, const llvm::object::ObjectFile &object,
				const llvm::RuntimeDyld::LoadedObjectInfo &info) override
	{
		auto loaded = info.getObjectForDebug(object); /* a copy with true addresses */
		if (!loaded.getBinary())
			return;
		llvm::StringRef elf = loaded.getBinary()->getData();
		std::lock_guard<std::mutex> hold(lock);
		dbgdyn_copy_object(context, elf.data(), elf.size(), 0, &handles[key]);
	}

	/* The code does not run any more, and its memory is about to be freed. */
	void notifyFreeingObject(ObjectKey key) override
	{
		std::lock_guard<std::mutex> hold(lock);
		dbgdyn_retire(context, handles[key]);
		handles.erase(key);
	}
};
} // namespace

extern "C" LLVMJITEventListenerRef dbgdyn_listener(void)
{
	static Listener listener;
	return llvm::wrap(&listener);
}
