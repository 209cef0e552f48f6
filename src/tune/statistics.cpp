#include "tune/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace cairn::tune {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double spread(const std::vector<double>& values) {
    constexpr double normal = 1.4826;
    if (values.size() < 2) return 0;
    const double middle = median(values);
    std::vector<double> distances;
    for (const double value : values) distances.push_back(std::abs(value - middle));
    return normal * median(distances);
}

// Each value lies below the median with probability 1/2, so that of n values the k lowest and the k highest may go as long as the chance that the
// median is among them, 2 P(binomial(n, 1/2) < k), stays at 5 %.
Interval median_interval(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    double tail = 0, term = std::pow(0.5, static_cast<double>(n));
    std::size_t left_out = 0;
    for (std::size_t k = 0; k < n; ++k) {  // tail: P(binomial < k + 1)
        tail += term;
        if (2 * tail > 0.05) break;
        left_out = k + 1;
        term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    }
    if (left_out == 0) return {};
    return {values[left_out - 1], values[n - left_out], true};
}

}  // namespace cairn::tune
