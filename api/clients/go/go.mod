module novaplace/api/clients/go

go 1.21
