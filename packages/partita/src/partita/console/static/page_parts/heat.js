// Computes rates and latencies from two samples of a server's counters.

// A counter that has become smaller was reset, because its server or its table is new.
const growth = (before, now) => (now >= (before || 0) ? now - (before || 0) : now);
const by = (list, key) => Object.fromEntries((list || []).map((one) => [key(one), one]));
const sum = (list, number) => list.reduce((total, one) => total + number(one), 0);

// Returns the bucket of the histogram below which this percentage of the requests was answered.
function within(counts, total, percent) {
  return counts.find(([, n]) => n >= (total * percent) / 100)?.[0];
}

function latencies(before, now) {
  const then = Object.fromEntries(before?.Latencies || []);
  return now.Latencies.map(([bound, n]) => [bound, growth(then[bound], n)]);
}

function operationsBetween(before, now, seconds) {
  const old = by(before?.Operations, (one) => one.Name);
  return now.Operations.map((one) => {
    const was = old[one.Name], requests = growth(was?.Requests, one.Requests), counts = latencies(was, one);
    return {
      name: one.Name, requests, counts, rate: requests / seconds,
      refused: growth(was?.Refused, one.Refused) / seconds, failed: growth(was?.Failed, one.Failed) / seconds,
      mean: requests ? (growth(was?.Seconds, one.Seconds) / requests) * 1000 : null,
      p99: requests ? within(counts, requests, 99) : null,
    };
  }).sort((a, b) => b.rate - a.rate);
}

function ownersBetween(before, now, seconds) {
  const units = by(before?.Units, (one) => `${one.Table}/${one.Index}/${one.Kind}`);
  const owners = {};
  for (const one of now.Units) {
    const was = units[`${one.Table}/${one.Index}/${one.Kind}`], name = one.Index ? `${one.Table}/${one.Index}` : one.Table;
    owners[name] ||= { name, table: one.Table };
    owners[name][one.Kind] = { used: growth(was?.Consumed, one.Consumed) / seconds, lost: growth(was?.Throttled, one.Throttled) / seconds, of: one.Entitled };
  }
  const used = (one) => (one.read?.used || 0) + (one.write?.used || 0);
  return Object.values(owners).sort((a, b) => used(b) - used(a));
}

function p99Of(operations) {
  const total = sum(operations, (one) => one.requests), bounds = new Map();
  for (const one of operations) for (const [bound, n] of one.counts) bounds.set(bound, (bounds.get(bound) || 0) + n);
  return total ? within([...bounds].sort(([a], [b]) => a - b), total, 99) : null;
}

export function between(before, now) {
  if (before && now.UptimeSeconds < before.UptimeSeconds) before = null;
  const seconds = Math.max(now.UptimeSeconds - (before?.UptimeSeconds || 0), 0.001);
  const operations = operationsBetween(before, now, seconds), owners = ownersBetween(before, now, seconds);
  const units = (kind, number) => sum(owners, (one) => one[kind]?.[number] || 0);
  return {
    operations, owners,
    figures: {
      rate: sum(operations, (one) => one.rate), p99: p99Of(operations),
      used: units("read", "used") + units("write", "used"), throttled: units("read", "lost") + units("write", "lost"),
    },
  };
}
