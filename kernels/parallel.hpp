// Tasks shared among threads, for kernels that are called with all of their work at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace chordal {

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
    std::vector<std::thread> others;
    for (std::size_t worker = 1; worker < threads && worker < tasks; ++worker)
        others.emplace_back(work, worker);
    work(0);
    for (std::thread& other : others) other.join();
    if (thrown) std::rethrow_exception(thrown);
    return !stopped;
}

}  // namespace chordal
