// Provokes each status of the program guarded in C++; prints "STATUS message" for each, with an argument for one call.
#include <cstdlib>
#include <iostream>
#include <vector>
#include <lib.hpp>

int main(int count, char **)
{
    const std::int64_t O = 3, V = 4;
    std::vector<double> t(O*V), g(V*V, 1.0), h(V*V, 1.0), y(1), z(O*V), large(300*300), other(300*300);
    tcgen::source ones{[](const std::int64_t *, const std::int64_t *count, void *tile) {
        for (std::int64_t n = 0; n < count[0]*count[1]; ++n) static_cast<double *>(tile)[n] = 1;
    }};
    const lib::guarded::inputs in{t, g, h, ones};
    const lib::guarded::outputs out{.z = z, .y = y};
    lib::guarded program({O, V});
    program.options.threads = 1;
    const auto fails = [](auto &&call) {
        try {
            call();
            std::cout << "0\n";
        } catch (const tcgen::error &error) {
            std::cout << error.status << " " << error.what() << "\n";
        }
    };
    if (count > 1) {
        fails([&] { program(in, out); });
        return 0;
    }
    program(in, out);
    fails([&] { program({t, g, h, {}}, out); });
    fails([&] { program({std::span(t).first(5), g, h, ones}, out); });
    fails([&] { lib::guarded({-1, V})(in, out); });
    // The class keeps memory of its own: too little of it is possible through C alone.
    const lib_guarded_extents n{O, V};
    const lib_guarded_inputs given{t.data(), g.data(), h.data(), ones.c()};
    const lib_guarded_outputs made{.z = z.data(), .y = y.data()};
    alignas(64) static char work[1 << 16];
    std::cout << lib_guarded(&n, &given, &made, work, 8, nullptr) << " " << lib_message() << "\n";
    std::cout << lib_guarded(&n, &given, &made, work + 8, 1 << 15, nullptr) << " " << lib_message() << "\n";
    fails([&] { program(in, {.z = t, .y = y}); });
    program.options.check = 1;
    g[1] = 7;
    fails([&] { program(in, out); });
    g[1] = 1;
    program.options.part = 1;
    program.options.last = 1000;
    fails([&] { program(in, out); });
    program.options.part = 0;
    try {
        program({t, g, h, {[](auto...) { throw std::runtime_error("no tile"); }}}, out);
    } catch (const std::runtime_error &error) {
        std::cout << TCGEN_SOURCE << " " << error.what() << "\n";
    }
    program.options.threads = -1;
    fails([&] { program(in, out); });
    program.options.threads = 1;
    lib::guarded wide({300, 300});
    wide.options.threads = 1;
    fails([&] { wide({large, large, large, ones}, {.z = other, .y = y}); });
    alignas(64) static char plan[1 << 16];
    lib_guarded_plan(&n, 2, plan, sizeof plan);
    program.options.plan = plan;
    fails([&] { program(in, out); });
    program.options.plan = nullptr;
    const int stop = 1;
    program.options.stop = &stop;
    fails([&] { program(in, out); });
    program.options.stop = nullptr;
    program.bind(in);
    program(in, out);
    lib::guarded moved = std::move(program);
    moved(in, out);
}
