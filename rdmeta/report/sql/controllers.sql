-- Terms of controllers; a term that crosses the end of a month is one.
WITH terms AS (
    SELECT
        cluster_id, broker, epoch,
        min(began_at) AS began_at, max(ended_at) AS ended_at, sum(seconds) AS seconds,
        arg_max(censored, began_at) AS censored
    FROM controller
    GROUP BY cluster_id, broker, epoch
)
SELECT
    cluster_id, broker, epoch, epoch_us(began_at) AS began_at_us, round(seconds, 3) AS seconds,
    censored, count(*) OVER () AS every
FROM terms
WHERE reaches(began_at, ended_at)
ORDER BY began_at_us, cluster_id, broker NULLS FIRST, epoch
LIMIT 40
