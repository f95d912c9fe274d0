// Tasks shared among threads, for kernels that are called with all of their work at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>

namespace chordal {

// Runs work(0) here and work(1) … work(helpers) on waiting threads, as far as these come before work(0) is
// done: on a busy machine, nobody waits for a thread that has not begun.
void with_helpers(std::size_t helpers, const std::function<void(std::size_t)>& work);

// Runs body(worker, task) for every task below `tasks`; worker is below `threads`. The calling thread is
// worker 0. Once a body returns false or throws, no task begins; the first exception is thrown
// again here. False if a body returned it.
template <class Body>
bool in_parallel(std::size_t tasks, std::size_t threads, const Body& body) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stopped{false};
    std::exception_ptr thrown;
    std::mutex mutex;
    const auto work = [&](std::size_t worker) {
        try {
            for (std::size_t task; !stopped && (task = next++) < tasks;)
                if (!body(worker, task)) stopped = true;
        } catch (...) {
            const std::lock_guard<std::mutex> lock(mutex);
            if (!thrown) thrown = std::current_exception();
            stopped = true;
        }
    };
    const std::size_t workers = threads < tasks ? threads : tasks;
    with_helpers(workers > 1 ? workers - 1 : 0, work);
    if (thrown) std::rethrow_exception(thrown);
    return !stopped;
}

}  // namespace chordal
