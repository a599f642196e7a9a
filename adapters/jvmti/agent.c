/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's life: what the JVM calls when it loads the library. */
#include "jvmti_internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/*
 * The facility is begun and, in a JVM that works, never ended: what was registered reaches the disk
 * without the process, nobody waits, and the image holds what was sampled. After dbgdyn_end it
 * would hold all that lives: five times as much for a run of javac.
 */
struct jvmti_agent jvmti_agent;

/* The library is loaded once, however often it is named: later ones find it at work. */
static atomic_flag loaded = ATOMIC_FLAG_INIT;

static void complain(const char *what)
{
	fprintf(stderr, "libdcpi-jvmti: %s\n", what);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* From here on the JVM can be asked; not all of its stubs were told when it made them. */
static void JNICALL vm_began(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
	(void)jni;
	(void)thread;
	jvmti_stubs_list(env);
}

static bool event_enable(jvmtiEnv *env, jvmtiEvent event)
{
	return (*env)->SetEventNotificationMode(env, JVMTI_ENABLE, event, NULL) == JVMTI_ERROR_NONE;
}

/* Whether anything can be told. */
static bool events_enable(jvmtiEnv *env, bool methods)
{
	static const jvmtiEventCallbacks callbacks = {
		.VMInit = vm_began,
		.CompiledMethodLoad = jvmti_method_loaded,
		.CompiledMethodUnload = jvmti_method_unloaded,
		.DynamicCodeGenerated = jvmti_stub_made,
	};
	bool any;

	if ((*env)->SetEventCallbacks(env, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE)
		return false;
	any = event_enable(env, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	/* Ask for loads only if unloads can be reported too. */
	if (methods && event_enable(env, JVMTI_EVENT_COMPILED_METHOD_UNLOAD))
		any |= event_enable(env, JVMTI_EVENT_COMPILED_METHOD_LOAD);
	event_enable(env, JVMTI_EVENT_VM_INIT);
	return any;
}

/* As many as this JVM has to give, now. Whether compiled methods are among them. */
static bool capabilities_add(jvmtiEnv *env)
{
	jvmtiCapabilities has = { 0 }, wanted = { 0 };

	if ((*env)->GetPotentialCapabilities(env, &has) != JVMTI_ERROR_NONE)
		return false;
	wanted.can_generate_compiled_method_load_events =
		has.can_generate_compiled_method_load_events;
	wanted.can_get_line_numbers = has.can_get_line_numbers;
	wanted.can_get_source_file_name = has.can_get_source_file_name;
	return (*env)->AddCapabilities(env, &wanted) == JVMTI_ERROR_NONE &&
	       wanted.can_generate_compiled_method_load_events;
}

/* ---- loading --------------------------------------------------------------------------------- */

static bool env_start(JavaVM *vm, jvmtiEnv *env, const struct jvmti_options *options)
{
	int r = dbgdyn_begin(options->facility, strlen(options->facility), NULL,
			     &jvmti_agent.context);

	if (r < 0) {
		complain(dbgdyn_strerror(r));
		return false;
	}
	jvmti_agent.methods =
		(struct jvmti_methods){ .vm = vm, .env = env, .signatures = options->signatures };
	if (events_enable(env, capabilities_add(env)))
		return true;
	complain("this JVM tells of no code");
	dbgdyn_end(jvmti_agent.context);
	return false;
}

/* NULL: nothing can work, and it was said why. */
static jvmtiEnv *agent_start(JavaVM *vm, const struct jvmti_options *options)
{
	jvmtiEnv *env;

	if ((*vm)->GetEnv(vm, (void **)&env, JVMTI_VERSION_1_2) != JNI_OK) {
		complain("this JVM has no JVMTI");
		return NULL;
	}
	if (env_start(vm, env, options))
		return env;
	(*env)->DisposeEnvironment(env);
	return NULL;
}

static bool options_take(const char *text, struct jvmti_options *out)
{
	char err[200];

	if (!jvmti_options_parse(text, out, err, sizeof(err)))
		return true;
	complain(err);
	fprintf(stderr, "hint: options are facility=NAME and signatures=yes|no\n");
	return false;
}

/* With wrong options the JVM does not start; where the agent cannot work it does. */
JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *text, void *reserved)
{
	struct jvmti_options options;

	(void)reserved;
	if (!options_take(text, &options))
		return JNI_ERR;
	if (!atomic_flag_test_and_set(&loaded) && !agent_start(vm, &options))
		atomic_flag_clear(&loaded);
	return JNI_OK;
}

/* The same callbacks report methods that exist already, before this returns. */
JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *text, void *reserved)
{
	struct jvmti_options options;
	jvmtiEnv *env;

	(void)reserved;
	if (!options_take(text, &options))
		return JNI_ERR;
	if (atomic_flag_test_and_set(&loaded))
		return JNI_OK;
	env = agent_start(vm, &options);
	if (!env) {
		atomic_flag_clear(&loaded);
		return JNI_ERR;
	}
	jvmti_stubs_list(env);
	(*env)->GenerateEvents(env, JVMTI_EVENT_COMPILED_METHOD_LOAD);
	return JNI_OK;
}
