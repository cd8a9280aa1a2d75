-- The gravest kind of the incidents in each bin of a cluster, and their time.
WITH cut AS (
    SELECT
        cluster_id, kind,
        epoch_us(greatest(began_at, getvariable('since'))) AS began,
        epoch_us(least(ended_at, getvariable('until'))) AS ended,
        unnest(range(
            bin_of(greatest(began_at, getvariable('since'))),
            bin_of(least(ended_at, getvariable('until')) - INTERVAL 1 MICROSECOND) + 1
        )) AS bin
    FROM incident
    WHERE reaches(began_at, ended_at) AND kind IN getvariable('kinds')
)
SELECT
    cluster_id, kind, bin,
    total(
        least(ended, epoch_us(getvariable('since')) + (bin + 1) * getvariable('bin_us'))
        - greatest(began, epoch_us(getvariable('since')) + bin * getvariable('bin_us'))
    ) AS us
FROM cut
GROUP BY cluster_id, kind, bin
HAVING us > 0
QUALIFY row_number() OVER (
    PARTITION BY cluster_id, bin ORDER BY list_position(getvariable('kinds'), kind)
) = 1
