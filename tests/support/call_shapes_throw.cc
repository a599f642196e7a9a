// SPDX-License-Identifier: BSD-2-Clause
// C++ functions of the program that knows its own call path: destructors, exceptions, virtual calls.
#include <memory>

#include "call_shapes.h"

namespace
{
struct thrown {
	uint64_t value;
};

// Its destructor runs while the exception passes.
class guard
{
      public:
	explicit guard(uint64_t &sum) : sum_(sum)
	{
	}
	~guard()
	{
		sum_ += shapes_down(1);
	}
	guard(const guard &) = delete;
	guard &operator=(const guard &) = delete;

      private:
	uint64_t &sum_;
};

class walker
{
      public:
	virtual ~walker() = default;
	virtual uint64_t walk(uint32_t left) = 0;
};

class thrower : public walker
{
      public:
	uint64_t walk(uint32_t left) override
	{
		uint64_t sum = 0;
		const guard at_end(sum);

		sum += shapes_down(left / 2);
		if (shapes_random(3) == 0)
			throw thrown{ sum };
		return sum + 1;
	}
};

class passer : public walker
{
      public:
	explicit passer(std::unique_ptr<walker> next) : next_(std::move(next))
	{
	}
	uint64_t walk(uint32_t left) override
	{
		uint64_t sum = left;
		const guard at_end(sum);

		return sum + next_->walk(left);
	}

      private:
	std::unique_ptr<walker> next_;
};
} // namespace

extern "C" uint64_t shapes_throw(uint32_t left)
{
	std::unique_ptr<walker> chain = std::make_unique<thrower>();

	for (uint32_t i = shapes_random(5); i > 0; i--)
		chain = std::make_unique<passer>(std::move(chain));
	try {
		return chain->walk(left);
	} catch (const thrown &t) {
		return t.value + shapes_down(left / 2);
	}
}
