-- What was set aside, clocks, and what is not known, by cluster.
SELECT
    cluster_id,
    CAST(sum(files_aside) AS BIGINT) AS files_aside,
    CAST(sum(clocks_back) AS BIGINT) AS clocks_back,
    max(disagreement_seconds) AS disagreement_seconds,
    CAST(sum(us(unknown_min_isr)) AS BIGINT) AS unknown_min_isr
FROM data_quality
WHERE inside(day)
GROUP BY ALL
ORDER BY ALL
