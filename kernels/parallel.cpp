#include "parallel.hpp"

#include <atomic>
#include <condition_variable>
#include <system_error>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace chordal {
namespace {

// Threads that wait for jobs. Several callers may have one each.
class Pool {
public:
    struct Job {
        const std::function<void(std::size_t)>& work;
        std::size_t seats;  // workers that may still join
        std::size_t joined = 0, active = 0;
    };

    void run(std::size_t helpers, const std::function<void(std::size_t)>& work) {
        Job job{work, helpers};
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            try {
                for (; threads_ < helpers; ++threads_) std::thread([this] { serve(); }).detach();
            } catch (const std::system_error&) {  // there are no more; those here will do
            }
            jobs_.push_back(&job);
        }
        wake_.notify_all();
        work(0);
        std::unique_lock<std::mutex> lock(mutex_);
        std::erase(jobs_, &job);  // who has not come yet need not
        done_.wait(lock, [&] { return job.active == 0; });
    }

private:
    Job* open() {
        for (Job* job : jobs_)
            if (job->seats > 0) return job;
        return nullptr;
    }
    [[noreturn]] void serve() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return open() != nullptr; });
            Job* job = open();
            --job->seats;
            ++job->active;
            const std::size_t worker = ++job->joined;
            lock.unlock();
            job->work(worker);
            lock.lock();
            if (--job->active == 0) done_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::vector<Job*> jobs_;
    std::size_t threads_ = 0;
};

// Never destroyed: its threads outlive whatever the process ends with. A forked process has none of them,
// and makes a pool of its own.
Pool& pool() {
    static std::atomic<Pool*> made{nullptr};
#if !defined(_WIN32)
    static std::atomic<pid_t> owner{0};
    if (owner.exchange(getpid()) != getpid()) made = nullptr;
#endif
    Pool* known = made;
    if (!known) {
        Pool* fresh = new Pool;
        if (made.compare_exchange_strong(known, fresh)) return *fresh;
        delete fresh;
    }
    return *known;
}

}  // namespace

void with_helpers(std::size_t helpers, const std::function<void(std::size_t)>& work) {
    if (helpers == 0) return work(0);
    pool().run(helpers, work);
}

}  // namespace chordal
