-- Incidents that reach into the span, by kind.
SELECT
    kind, count(DISTINCT cluster_id) AS clusters, count(*) AS incidents,
    us_total(minutes) AS minutes,
    max(epoch_us(ended_at) - epoch_us(began_at)) / 1e6 AS longest_seconds,
    count(*) FILTER (WHERE censored) AS censored
FROM incident
WHERE reaches(began_at, ended_at)
GROUP BY kind
