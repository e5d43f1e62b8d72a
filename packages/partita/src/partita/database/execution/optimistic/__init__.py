"""Optimistic execution: a request is decided first, and counts if what it read is unchanged.

Whoever decides a request away from the single writer does it in these steps:

1. Run the operation over a view of the data that notes what it reads (the read set).
2. Keep what it changes (the write set). Both are a `Draft`.
3. Commit the draft, if nothing in its read set has changed; otherwise go back to 1. The time of the
   request stays the same, and so do its charges (`ChargedOnce`).

Two rooms do that. `server/large_requests/` decides in another process, which asks the server for
one value after the other. `database/shared/rounds/` decides over data that was fetched for a whole
round of requests. A view, the way to fetch what it misses, and a policy for requests that keep
conflicting belong to each of them; a further way to run requests on other cores would bring its
own.
"""
