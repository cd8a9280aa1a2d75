-- The topics with the most partition-time at risk, gravest kind first.
SELECT *, count(*) OVER () AS every
FROM topic_sum
ORDER BY
    leaderless DESC, under_min_isr DESC NULLS LAST, under_replicated DESC, single_copy DESC,
    at_min_isr DESC NULLS LAST, reassigning DESC NULLS LAST, not_preferred DESC,
    rack_unsafe DESC NULLS LAST, cluster_id, topic
LIMIT 40
