// How a kernel says that it was stopped.
#pragma once

namespace chordal {

// After Ctrl-C, with Python's error set; or out of time.
struct Stopped {};

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
