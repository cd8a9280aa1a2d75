-- Elections by cluster; `unclean` is null where no source tells.
SELECT
    cluster_id,
    CAST(sum(elections) AS BIGINT) AS elections,
    CAST(sum(unclean) AS BIGINT) AS unclean
FROM churn_day
WHERE kind = 'cluster' AND inside(day)
GROUP BY ALL
ORDER BY ALL
