-- Incidents that reach into the span, by cluster and kind.
SELECT
    cluster_id,
    kind,
    count(*) AS incidents,
    CAST(sum(us(minutes)) AS BIGINT) AS us,
    max(epoch_us(ended_at) - epoch_us(began_at)) AS longest,
    count(*) FILTER (WHERE censored) AS censored
FROM incident
WHERE reaches(began_at, ended_at)
GROUP BY ALL
ORDER BY ALL
