// How a kernel says that it was stopped.
#pragma once

#include <cstddef>

namespace chordal {

// After Ctrl-C, with Python's error set; or out of time.
struct Stopped {};

// True after Ctrl-C, when Python's error is set, and when the time limit of this thread is over (`out_of_time`
// tells which). The binding throws Stopped, or returns what there is. Takes Python's lock at
// most some fifty times a second and else looks at the clock alone: loops may ask every 10 µs.
bool interrupted();

// For loops in which even a counter costs: counts work as Listening (patience.hpp) does, out of line.
void listen(std::size_t work);

// Whether the last stop of this thread was for its time limit.
bool out_of_time();

// Without a time limit, as long as it lives: for what has to be done after it. Ctrl-C is still heard.
class Grace {
public:
    Grace();
    ~Grace();
    Grace(const Grace&) = delete;
    Grace& operator=(const Grace&) = delete;

private:
    double deadline_;
};

}  // namespace chordal
